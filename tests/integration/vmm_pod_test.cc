// SPDX-License-Identifier: Apache-2.0
//
// Pods in machines, with a pause container and without: one kernel for all of a pod's containers,
// and what the kubelet asks of them.
#include <filesystem>
#include <future>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

class VmmPod : public VmmPodTest {};

INSTANTIATE_TEST_SUITE_P(Sandboxer, VmmPod, kSandboxers, SandboxerName);

TEST_P(VmmPod, IsOneMachine) {
  const std::string first = Run("first");
  const std::string second = Run("second");
  EXPECT_EQ(HelpersCalled(node(), settings().vmm_program()).size(), 1U);
  const std::string boot = std::string("cat ") + kBootId;
  EXPECT_EQ(Says(first, boot), Says(second, boot));
  EXPECT_EQ(Says(first, "hostname"), "web-0\n");
  Says(first, "echo mine >/tmp/mine");
  EXPECT_NE(Exec(second, {"cat", "/tmp/mine"}).exit_code, 0) << "roots are apart";
}

TEST_P(VmmPod, SharesItsNetworkItsMemoryAndItsVolumes) {
  const std::string folder = config().log_directory + "/empty-dir";
  fs::create_directories(folder);
  ContainerConfig server = Container("server",
                                     "echo text >/data/note; echo shared >/dev/shm/note; "
                                     "exec nc -ll -p 8080 -e echo served");
  ContainerConfig client = Container("client", "exec sleep 100000");
  Mount(server, folder, "/data");
  Mount(client, folder, "/data", true);
  RunContainerIn(pod(), config(), server);
  const std::string id = RunContainerIn(pod(), config(), client);
  EXPECT_TRUE(Eventually([&] { return Exec(id, {"nc", "127.0.0.1", "8080"}).out == "served\n"; }));
  EXPECT_EQ(Says(id, "cat /dev/shm/note"), "shared\n");
  EXPECT_EQ(Says(id, "cat /data/note"), "text\n");
  EXPECT_NE(Exec(id, {"sh", "-c", "echo x >/data/note"}).exit_code, 0);
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
      Run("willing", "trap 'exit 5' TERM; echo wrong >&2; echo up; while :; do sleep 0.1; done");
  ASSERT_TRUE(WaitForText(LogOf("willing"), "stdout F up\n"));
  EXPECT_TRUE(WaitForText(LogOf("willing"), "stderr F wrong\n"));
  EXPECT_TRUE(cri().Stop(willing, std::chrono::seconds(30)));
  EXPECT_EQ(StatusOf(willing).exit_code(), 5);
  const std::string deaf = Run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done");
  ASSERT_TRUE(WaitForText(LogOf("deaf"), "up"));
  EXPECT_TRUE(cri().Stop(deaf, std::chrono::seconds(1)));
  EXPECT_EQ(StatusOf(deaf).exit_code(), 137);
}

TEST_P(VmmPod, TellsThatMemoryRanOut) {
  ContainerConfig hungry = Container("hungry", "exec tail /dev/zero");
  hungry.memory_limit_bytes = 32 * kMiB;
  const cri::ContainerStatus end = WaitForEnd(RunContainerIn(pod(), config(), hungry));
  EXPECT_EQ(end.exit_code(), 137);
  EXPECT_EQ(end.reason(), "OOMKilled");
  Run("next");
}

// And K8, on a scale that a translated guest can bear.
TEST_P(VmmPod, IsAsLargeAsItsContainersNeed) {
  const std::string small = Run("small");
  const auto has_mib = [&] {
    return std::stoll(Says(small, "sed -n 's/MemTotal: *//p' /proc/meminfo")) >> 10;
  };
  const auto before = has_mib();
  ContainerConfig large = Container("large", "exec sleep 100000");
  large.memory_limit_bytes = 256 * kMiB;
  const std::string id = RunContainerIn(pod(), config(), large);
  EXPECT_GE(has_mib(), before + 200);
  const Status updated = cri().UpdateMemory(id, 512 * kMiB);
  EXPECT_TRUE(updated) << updated.error().message;
  EXPECT_GE(has_mib(), before + 400);
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0)));
  EXPECT_TRUE(cri().Remove(id));
  const auto is_small = [&] { return has_mib() < before + 100; };
  EXPECT_TRUE(Eventually(is_small, kLong)) << before << " " << has_mib();
  for (int i = 0; i < 3; ++i) {
    ContainerConfig wrong = Container("wrong-" + std::to_string(i), "");
    wrong.command = {"/bin/nowhere"};
    wrong.memory_limit_bytes = 128 * kMiB;
    EXPECT_FALSE(cri().Run(pod(), config(), wrong));
  }
  EXPECT_TRUE(Eventually(is_small, kLong)) << before << " " << has_mib();
  Run("last");
}

TEST_P(VmmPod, ChangesTheLimitsOfAContainer) {
  ContainerConfig container = Container("one", "exec sleep 100000");
  container.memory_limit_bytes = 64 * kMiB;
  const std::string id = RunContainerIn(pod(), config(), container);
  cri::LinuxContainerResources resources;
  resources.set_memory_limit_in_bytes(96 * kMiB);
  resources.set_cpu_quota(50'000);
  resources.set_cpu_period(100'000);
  const Status updated = cri().Update(id, resources);
  ASSERT_TRUE(updated) << updated.error().message;
  const auto limit = [&](const std::string& file) {
    return Says(id, "cat /sys/fs/cgroup/" + file);
  };
  EXPECT_EQ(limit("memory.max"), std::to_string(96 * kMiB) + "\n");
  EXPECT_EQ(limit("cpu.max"), "50000 100000\n");
}

// K9, U1: the kubelet asks again while the first stop is under way.
TEST_P(VmmPod, IsStoppedTwiceAtOnce) {
  Run("one");
  const auto stop = [&] { return cri().StopPod(pod()); };
  auto other = std::async(std::launch::async, stop);
  const Status first = stop();
  const Status second = other.get();
  EXPECT_TRUE(first) << first.error().message;
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(stop());
  ExpectNoMachine(node());
}

}  // namespace
}  // namespace gantry::e2e
