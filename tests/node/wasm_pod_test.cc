// SPDX-License-Identifier: Apache-2.0
//
// Guests and native containers in pods as a kubelet with systemd's cgroup driver makes them.
#include <gmock/gmock.h>

#include "tests/node/harness/guests.h"
#include "tests/node/harness/pods.h"

namespace gantry::node {
namespace {

class SystemdWasmPod : public PodTest {
 protected:
  static e2e::ContainerConfig Container(const std::string& name, const Words& command) {
    e2e::cri::Mount guests;
    guests.set_container_path("/guests");
    guests.set_host_path(GuestsFolder());
    guests.set_readonly(true);
    e2e::ContainerConfig container;
    container.name = name;
    container.command = command;
    container.mounts = {guests};
    return container;
  }

  std::string Run(const std::string& pod, const e2e::PodConfig& config,
                  const e2e::ContainerConfig& container) {
    const auto id = cri().Run(pod, config, container);
    EXPECT_TRUE(id) << id.error_or(Error{}).message;
    return id.value_or("");
  }

  int CodeOf(const std::string& id, const Words& command) {
    const auto done = cri().Exec(id, command);
    EXPECT_TRUE(done) << done.error_or(Error{}).message;
    return done ? done->exit_code : -1;
  }

  e2e::cri::ContainerStatus WaitForEnd(const std::string& id) {
    e2e::cri::ContainerStatus status;
    EXPECT_TRUE(e2e::Eventually([&] {
      const auto now = cri().ContainerStatus(id);
      status = now ? now->status() : e2e::cri::ContainerStatus();
      return status.state() == e2e::cri::CONTAINER_EXITED;
    }));
    return status;
  }

  static std::string ScopeOf(const std::string& id) { return "cri-containerd-" + id + ".scope"; }
};

INSTANTIATE_PODS(SystemdWasmPod);

TEST_P(SystemdWasmPod, HasGuestsAndNativeContainersInScopesOfItsSlice) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string native = Run(pod, config, Container("native", {"sleep", "1000"}));
  const std::string guest = Run(pod, config, Container("guest", Tool({"spin"})));
  for (const std::string& id : {native, guest}) {
    EXPECT_EQ(ActiveState(ScopeOf(id)), "active");
    EXPECT_EQ(Property(ScopeOf(id), "Slice"), config.cgroup_parent);
    EXPECT_TRUE(e2e::Eventually([&] { return e2e::ProcessesInCgroup(ScopeOf(id)).size() == 1; }));
    EXPECT_EQ(CodeOf(id, {"sh", "-c", "exit 5"}), 5);
    EXPECT_EQ(CodeOf(id, Tool({"exit", "200"})), 200);
  }
  constexpr uint64_t kSecondNs = 1'000'000'000;
  EXPECT_TRUE(e2e::Eventually([&] {
    const auto stats = cri().Stats(guest);
    return stats && stats->cpu().usage_core_nano_seconds().value() > kSecondNs &&
           stats->memory().working_set_bytes().value() > 0;
  }));
  EXPECT_TRUE(cri().Stop(guest, std::chrono::seconds(60)));
  EXPECT_EQ(WaitForEnd(guest).exit_code(), 143);
}

TEST_P(SystemdWasmPod, TellsThatMemoryRanOut) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  e2e::ContainerConfig hog = Container("hog", Tool({"grow", "200"}));
  hog.memory_limit_bytes = 32 << 20;
  hog.annotations = {{"io.gantry.wasm/memory", "1Gi"}};
  const e2e::cri::ContainerStatus status = WaitForEnd(Run(pod, config, hog));
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.reason(), "OOMKilled");
}

TEST_P(SystemdWasmPod, OutlivesRestartsOfContainerdAndEngine) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string id = Run(pod, config, Container("guest", Tool({"sleep", "1000000"})));
  ASSERT_EQ(Systemctl({"restart", kEngineUnit, kContainerdUnit}).status, 0);
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(cri().ContainerStatus(id)->status().state(), e2e::cri::CONTAINER_RUNNING);
  EXPECT_EQ(CodeOf(id, Tool({"exit", "42"})), 42);
}

}  // namespace
}  // namespace gantry::node
