// SPDX-License-Identifier: Apache-2.0
//
// New limits of a container whose cgroup is a scope of systemd: they hold, and go on
// holding when systemd sets what it knows of the unit.
#include <gmock/gmock.h>

#include "tests/node/harness/pods.h"

namespace gantry::node {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
/// More than the 64 MiB that a container of the fixture begins with.
constexpr char kTake80Megabytes[] = "head -c 80000000 /dev/zero | tail >/dev/null; echo rc=$?";

class SystemdPodLimits : public PodTest {
 protected:
  void ExpectTheNewOnes(const std::string& id, const std::string& folder) {
    EXPECT_EQ(e2e::ReadText(folder + "/memory.max"), std::to_string(128 * kMiB) + "\n");
    EXPECT_EQ(e2e::ReadText(folder + "/cpuset.cpus"), "1\n");
    EXPECT_EQ(e2e::ReadText(folder + "/cpu.max"), "50000 100000\n");
    const auto allowed = cri().Exec(id, {"grep", "Cpus_allowed_list", "/proc/self/status"});
    ASSERT_TRUE(allowed) << allowed.error().message;
    EXPECT_EQ(allowed->out, "Cpus_allowed_list:\t1\n");
    const auto taken = cri().Exec(id, {"sh", "-c", kTake80Megabytes});
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->out, "rc=0\n");
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, SystemdPodLimits, ::testing::Values("podsandbox"),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(SystemdPodLimits, AreTheNewOnesWhateverSystemdAppliesAgain) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  const std::string id = RunContainer(pod, config, {"sleep", "1000"});
  const std::string scope = "cri-containerd-" + id + ".scope";
  const std::string folder = SliceFolder(config.name) + "/" + scope;

  e2e::cri::LinuxContainerResources resources;
  resources.set_cpuset_cpus("0");
  Status updated = cri().Update(id, resources);
  ASSERT_TRUE(updated) << updated.error().message;
  // Another processor than before, and of all else more.
  resources.set_cpuset_cpus("1");
  resources.set_memory_limit_in_bytes(128 * kMiB);
  resources.set_cpu_quota(50000);
  resources.set_cpu_period(100000);
  updated = cri().Update(id, resources);
  ASSERT_TRUE(updated) << updated.error().message;

  ASSERT_NO_FATAL_FAILURE(ExpectTheNewOnes(id, folder));
  EXPECT_EQ(Property(scope, "MemoryMax"), std::to_string(128 * kMiB));
  EXPECT_EQ(Property(scope, "AllowedCPUs"), "1");
  EXPECT_EQ(Property(scope, "CPUQuotaPerSecUSec"), "500ms");
  ASSERT_EQ(Systemctl({"daemon-reload"}).status, 0);
  ASSERT_EQ(Systemctl({"set-property", "--runtime", scope, "TasksMax=500"}).status, 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTheNewOnes(id, folder));
}

TEST_P(SystemdPodLimits, WeighSharesAsTheContainersRuntimeDoes) {
  const e2e::PodConfig config = Pod(Id("pod"));
  const std::string pod = RunPod(config);
  e2e::ContainerConfig container;
  container.name = "one";
  container.command = {"sleep", "1000"};
  container.cpu_shares = 1024;
  const auto id = cri().Run(pod, config, container);
  ASSERT_TRUE(id) << id.error().message;
  const std::string scope = "cri-containerd-" + *id + ".scope";
  const auto weight = [&] {
    return std::stoi(e2e::ReadText(SliceFolder(config.name) + "/" + scope + "/cpu.weight"));
  };
  const auto update = [&](int64_t shares) {
    e2e::cri::LinuxContainerResources resources;
    resources.set_cpu_shares(shares);
    const Status updated = cri().Update(*id, resources);
    EXPECT_TRUE(updated) << updated.error().message;
    return weight();
  };

  const int first = weight();
  EXPECT_EQ(update(1024), first);
  EXPECT_GT(update(2048), first);
  EXPECT_EQ(update(1024), first);
  EXPECT_EQ(Property(scope, "CPUWeight"), std::to_string(first));
}

}  // namespace
}  // namespace gantry::node
