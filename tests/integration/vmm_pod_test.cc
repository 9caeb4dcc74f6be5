// SPDX-License-Identifier: Apache-2.0
//
// Pods in machines, with a pause container and without: one kernel for all of a pod's containers,
// and what the kubelet asks of them.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/take_memory.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

class VmmPod : public VmmPodTest {
 protected:
  void SetUp() override {
    VmmPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    config_ = Pod();
    config_.hostname = "web-0";
    pod_ = RunPod(config_);
  }

  std::string Run(const std::string& name, const std::string& script = "exec sleep 100000") {
    return RunContainerIn(pod_, config_, Container(name, script));
  }

  PodConfig config_;
  std::string pod_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, VmmPod, kSandboxers, SandboxerName);

TEST_P(VmmPod, IsOneMachine) {
  const std::string first = Run("first");
  const std::string second = Run("second");
  EXPECT_EQ(HelpersCalled(node(), kQemu).size(), 1U);
  const std::string boot = std::string("cat ") + kBootId;
  EXPECT_EQ(Says(first, boot), Says(second, boot));
  EXPECT_EQ(Says(first, "hostname"), "web-0\n");
  Says(first, "echo mine >/tmp/mine");
  EXPECT_NE(Exec(second, {"cat", "/tmp/mine"}).exit_code, 0) << "roots are apart";
}

TEST_P(VmmPod, SharesItsNetworkAndItsMemory) {
  const std::string server =
      Run("server", "echo shared >/dev/shm/note; exec nc -ll -p 8080 -e echo served");
  const std::string client = Run("client");
  EXPECT_TRUE(
      Eventually([&] { return Exec(client, {"nc", "127.0.0.1", "8080"}).out == "served\n"; }));
  EXPECT_EQ(Says(client, "cat /dev/shm/note"), "shared\n");
}

TEST_P(VmmPod, SharesAnEmptyDir) {
  const std::string folder = config_.log_directory + "/empty-dir";
  fs::create_directories(folder);
  ContainerConfig writer = Container("writer", "echo text >/data/note; exec sleep 100000");
  ContainerConfig reader = Container("reader", "exec sleep 100000");
  Mount(writer, folder, "/data");
  Mount(reader, folder, "/data", true);
  RunContainerIn(pod_, config_, writer);
  const std::string id = RunContainerIn(pod_, config_, reader);
  EXPECT_TRUE(Eventually([&] { return Exec(id, {"cat", "/data/note"}).out == "text\n"; }));
  EXPECT_NE(Exec(id, {"sh", "-c", "echo x >/data/note"}).exit_code, 0);
}

TEST_P(VmmPod, WritesTheLogsOfItsContainers) {
  Run("one", "echo said; echo wrong >&2; exec sleep 100000");
  EXPECT_TRUE(WaitForText(LogOf(config_, "one"), "stdout F said\n"));
  EXPECT_TRUE(WaitForText(LogOf(config_, "one"), "stderr F wrong\n"));
}

TEST_P(VmmPod, MeasuresItsContainers) {
  const std::string busy = Run("busy", "while :; do :; done");
  uint64_t spent = 0;
  EXPECT_TRUE(Eventually([&] {
    const auto stats = cri().Stats(busy);
    spent = stats ? stats->cpu().usage_core_nano_seconds().value() : 0;
    return spent > 200'000'000;
  })) << spent;
  const auto stats = cri().Stats(busy);
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->memory().working_set_bytes().value(), 0U);
}

TEST_P(VmmPod, StopsWithGraceAndWithout) {
  const std::string willing =
      Run("willing", "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done");
  ASSERT_TRUE(WaitForText(LogOf(config_, "willing"), "up"));
  EXPECT_TRUE(cri().Stop(willing, std::chrono::seconds(30)));
  EXPECT_EQ(StatusOf(willing).exit_code(), 5);
  const std::string deaf = Run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done");
  ASSERT_TRUE(WaitForText(LogOf(config_, "deaf"), "up"));
  EXPECT_TRUE(cri().Stop(deaf, std::chrono::seconds(1)));
  EXPECT_EQ(StatusOf(deaf).exit_code(), 137);
}

TEST_P(VmmPod, TellsThatMemoryRanOut) {
  ContainerConfig hungry = Container("hungry", "exec tail /dev/zero");
  hungry.memory_limit_bytes = int64_t{32} << 20;
  const cri::ContainerStatus end = WaitForEnd(RunContainerIn(pod_, config_, hungry));
  EXPECT_EQ(end.exit_code(), 137);
  EXPECT_EQ(end.reason(), "OOMKilled");
  Run("next");
}

TEST_P(VmmPod, GivesWhatItsContainersAskForAndTakesItBack) {
  const auto memory_of = [&](const std::string& id) {
    return std::stoll(Says(id, "sed -n 's/MemTotal: *//p' /proc/meminfo"));
  };
  const std::string small = Run("small");
  const auto before = memory_of(small);
  ContainerConfig large = Container("large", "exec sleep 100000");
  large.memory_limit_bytes = int64_t{512} << 20;
  const std::string id = RunContainerIn(pod_, config_, large);
  EXPECT_TRUE(Eventually([&] { return memory_of(small) >= before + (400 << 10); }))
      << before << " " << memory_of(small);
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0)));
  EXPECT_TRUE(cri().Remove(id));
  EXPECT_TRUE(Eventually([&] { return memory_of(small) < before + (200 << 10); }, kLong))
      << before << " " << memory_of(small);
}

// K8, on a scale that a translated guest can bear.
TEST_P(VmmPod, AreNotLargerForContainersThatDoNotStart) {
  const std::string one = Run("one");
  for (int i = 0; i < 5; ++i) {
    ContainerConfig wrong = Container("wrong-" + std::to_string(i), "");
    wrong.command = {"/bin/nowhere"};
    wrong.memory_limit_bytes = int64_t{64} << 20;
    EXPECT_FALSE(cri().Run(pod_, config_, wrong));
  }
  Run("last");
  EXPECT_EQ(Exec(one, {"echo", "on"}).out, "on\n");
}

TEST_P(VmmPod, StopsTwice) {
  Run("one");
  EXPECT_TRUE(cri().StopPod(pod_));
  EXPECT_TRUE(cri().StopPod(pod_));
  ExpectNoMachine(node());
}

}  // namespace
}  // namespace gantry::e2e
