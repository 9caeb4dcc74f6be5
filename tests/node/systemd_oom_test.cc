// SPDX-License-Identifier: Apache-2.0
//
// A container that needs more than its memory, in a scope that systemd removes before the
// engine comes to look at it.
#include <signal.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/node/harness/pods.h"

namespace gantry::node {
namespace {

class SystemdPodOom : public PodTest {
 protected:
  /// Of a container that has just this in its scope.
  static pid_t InitIn(const std::string& scope) {
    pid_t init = 0;
    e2e::Eventually([&] {
      const auto all = e2e::ProcessesInCgroup(scope);
      const auto found = std::ranges::find(all, "sh", [](const e2e::HostProcess& process) {
        return process.command.substr(0, process.command.find(' '));
      });
      init = found == all.end() ? 0 : found->pid;
      return init != 0;
    });
    return init;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, SystemdPodOom, ::testing::Values("podsandbox"),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(SystemdPodOom, IsToldThoughTheScopeIsGoneFirst) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string id = RunContainer(
      pod, config, {"sh", "-c", "while [ ! -e /go ]; do sleep 1; done; exec tail /dev/zero"});
  const std::string scope = "cri-containerd-" + id + ".scope";
  const pid_t init = InitIn(scope);
  ASSERT_NE(init, 0);
  const pid_t engine = Engine();
  ASSERT_EQ(kill(engine, SIGSTOP), 0);
  e2e::WriteText("/proc/" + std::to_string(init) + "/root/go", "");
  EXPECT_TRUE(e2e::Eventually(
      [&] { return e2e::ListFolder(SliceFolder(config.name) + "/" + scope).empty(); }));
  ASSERT_EQ(kill(engine, SIGCONT), 0);

  EXPECT_TRUE(e2e::Eventually([&] {
    const auto status = cri().ContainerStatus(id);
    return status && status->status().state() == e2e::cri::CONTAINER_EXITED;
  }));
  const auto status = cri().ContainerStatus(id);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->status().exit_code(), 137);
  EXPECT_EQ(status->status().reason(), "OOMKilled");
  EXPECT_EQ(Engine(), engine);
}

}  // namespace
}  // namespace gantry::node
