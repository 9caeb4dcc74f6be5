// SPDX-License-Identifier: Apache-2.0
//
// What the pod as a whole may use: the limits of its containers and the overhead of
// its RuntimeClass, in the pod's cgroup. A kubelet makes that cgroup; where nobody
// did, the pods that the shim makes have one made.
#include "tests/harness/cri_pod.h"
#include "tests/harness/take_memory.h"

namespace gantry::e2e {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string LimitOf(const std::string& cgroup) { return ReadText(MemoryLimitFile(cgroup)); }

std::string Text(int64_t bytes) { return std::to_string(bytes) + "\n"; }

class CriResources : public CriPodTest {
 protected:
  PodConfig PodOf(const PodMemory& memory) {
    PodConfig config = Pod();
    config.memory = memory;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriResources, kSandboxers, SandboxerName);

TEST_P(CriResources, OfTheKubeletsCgroupAreItsOwn) {
  const PodConfig config = PodOf({.overhead = 16 * kMiB, .resources = 64 * kMiB});
  WriteText(MemoryLimitFile(config.cgroup_parent), std::to_string(96 * kMiB));
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"}, 32 * kMiB);
  EXPECT_EQ(LimitOf(config.cgroup_parent), Text(96 * kMiB)) << "what it had before the pod";
  EXPECT_EQ(LimitOf(config.cgroup_parent + "/" + id), Text(32 * kMiB));
}

TEST_P(CriResources, OfACgroupThatNobodyMadeHaveTheOverheadInThem) {
  if (is_podsandbox()) {
    GTEST_SKIP() << "with a pause container containerd keeps the pod's limits to itself";
  }
  const PodConfig config = PodOf({.overhead = 16 * kMiB, .resources = 64 * kMiB});
  const std::string pod = RunPod(config);
  EXPECT_EQ(LimitOf(config.cgroup_parent), Text(80 * kMiB));
  RunContainerIn(pod, config, "one", {"sleep", "1000"}, 32 * kMiB);
  EXPECT_EQ(LimitOf(config.cgroup_parent), Text(80 * kMiB));
}

TEST_P(CriResources, OfThePodStopWhatIsWithinItsContainersLimits) {
  if (is_podsandbox()) {
    GTEST_SKIP() << "with a pause container containerd keeps the pod's limits to itself";
  }
  const PodConfig config = PodOf({.overhead = 4 * kMiB, .resources = 20 * kMiB});
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "hog", TakeMemory(90'000'000), 512 * kMiB);
  EXPECT_EQ(WaitForEnd(id).exit_code(), 137);
  EXPECT_EQ(cri().PodStatus(pod)->status().state(), cri::SANDBOX_READY);
}

TEST_P(CriResources, AreChangedWhileThePodRuns) {
  if (!settings().AtLeast(2, 3)) {
    GTEST_SKIP() << "containerd " << settings().release << " knows no UpdatePodSandboxResources";
  }
  const PodConfig config = PodOf({.overhead = 16 * kMiB, .resources = 64 * kMiB});
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"}, 32 * kMiB);
  const Status updated =
      cri().UpdatePodMemory(pod, {.overhead = 16 * kMiB, .resources = 128 * kMiB});
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_TRUE(cri().UpdateMemory(id, 96 * kMiB));
  EXPECT_EQ(LimitOf(config.cgroup_parent + "/" + id), Text(96 * kMiB));
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
}

}  // namespace
}  // namespace gantry::e2e
