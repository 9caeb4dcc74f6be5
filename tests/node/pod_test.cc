// SPDX-License-Identifier: Apache-2.0
//
// Pods as a kubelet with systemd's cgroup driver makes them.
#include <gmock/gmock.h>

#include "tests/node/harness/pods.h"

namespace gantry::node {
namespace {

class SystemdPod : public PodTest {};

INSTANTIATE_PODS(SystemdPod);
INSTANTIATE_TEST_SUITE_P(Type, SystemdPod, testing::Values("runc-type"),
                         [](const auto&) { return "runc"; });

TEST_P(SystemdPod, HasItsContainersInScopesOfItsSlice) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string id = RunContainer(pod, config, {"sleep", "1000"});
  const std::string scope = "cri-containerd-" + id + ".scope";
  EXPECT_EQ(ActiveState(scope), "active");
  EXPECT_EQ(Property(scope, "Slice"), config.cgroup_parent);
  EXPECT_EQ(e2e::ReadText(SliceFolder(config.name) + "/" + scope + "/memory.max"),
            std::to_string(64 << 20) + "\n");
  const auto stats = cri().Stats(id);
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->cpu().usage_core_nano_seconds().value(), 0U);
  EXPECT_GT(stats->memory().working_set_bytes().value(), 0U);
}

TEST_P(SystemdPod, OutlivesRestartsOfContainerdAndEngine) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string id = RunContainer(pod, config, {"sleep", "1000"});
  ASSERT_EQ(Systemctl({"restart", kEngineUnit, kContainerdUnit}).status, 0);
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(cri().PodStatus(pod)->status().state(), e2e::cri::SANDBOX_READY);
  EXPECT_EQ(cri().ContainerStatus(id)->status().state(), e2e::cri::CONTAINER_RUNNING);
  const auto said = cri().Exec(id, {"echo", "here"});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "here\n");
}

}  // namespace
}  // namespace gantry::node
