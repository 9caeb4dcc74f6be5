// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the containers of one sentry: whose CPU time and whose memory it is, over
// restarts of the engine too, and that of a container that has ended there are none.
#include <signal.h>

#include <algorithm>
#include <array>

#include <gmock/gmock.h>

#include <gantry/protowire.h>

#include "core/rpc/blocking_client.h"
#include "tests/harness/cri_pod.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMb = 1'000'000;
const Words kBusy = {"sh", "-c", "while :; do :; done"};
const Words kIdle = {"sleep", "1000"};
/// In the memory of one process.
constexpr const char* kHolds40Mb =
    R"(awk 'BEGIN { x = sprintf("%40000000s", "x"); print "ready"; system("sleep 1000") }')";

class GvisorPodStats : public CriPodTest {
 protected:
  void SetUp() override {
    if (!settings().gvisor()) {
      GTEST_SKIP() << "is about the gvisor backend";
    }
    CriPodTest::SetUp();
    if (!IsSkipped()) {
      config_ = Pod();
      pod_ = RunPod(config_);
    }
  }

  std::string Run(const std::string& name, const Words& command) {
    return RunContainerIn(pod_, config_, name, command);
  }

  /// Started, and has said "ready".
  std::string RunUntilReady(const std::string& name, const std::string& script) {
    const std::string id = Run(name, {"sh", "-c", script});
    EXPECT_TRUE(WaitForText(config_.log_directory + "/" + name + ".log", "ready"));
    return id;
  }

  uint64_t CpuOf(const std::string& id) {
    const auto stats = cri().Stats(id);
    EXPECT_TRUE(stats) << stats.error_or(Error{}).message;
    return stats ? stats->cpu().usage_core_nano_seconds().value() : 0;
  }

  uint64_t MemoryOf(const std::string& id) {
    const auto stats = cri().Stats(id);
    EXPECT_TRUE(stats) << stats.error_or(Error{}).message;
    return stats ? stats->memory().working_set_bytes().value() : 0;
  }

  /// By the kernel, of the pod with all that is in it.
  uint64_t CpuOfPod() const {
    for (const std::string& folder : CgroupFolders(config_.cgroup_parent)) {
      if (const std::string v1 = ReadText(folder + "/cpuacct.usage"); !v1.empty()) {
        return std::stoull(v1);
      }
      constexpr std::string_view kUsage = "usage_usec ";
      if (const std::string v2 = ReadText(folder + "/cpu.stat"); v2.starts_with(kUsage)) {
        return std::stoull(v2.substr(kUsage.size())) * 1000;
      }
    }
    return 0;
  }

  void ExpectUntil(const std::string& id, uint64_t cpu) {
    EXPECT_TRUE(Eventually([&] { return CpuOf(id) >= cpu; })) << CpuOf(id);
  }

  static void KillEngine() {
    const HostProcess engine = node().Engine();
    ASSERT_NE(engine.pid, 0);
    kill(engine.pid, SIGKILL);
    ASSERT_TRUE(WaitGone(engine.pid));
  }

  PodConfig config_;
  std::string pod_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, GvisorPodStats, kSandboxers, SandboxerName);

TEST_P(GvisorPodStats, HaveTheTimeWhereItIsSpent) {
  const std::string idle = Run("idle", kIdle);
  const std::string busy = Run("busy", kBusy);
  ExpectUntil(busy, 1000 * kMillisecond);
  const uint64_t of_idle = CpuOf(idle);
  EXPECT_GT(of_idle, 0U);
  // Each has its part of the pod's time between the looks at it, which are not the other's.
  const uint64_t of_busy = CpuOf(busy);
  // What the sentry needed to start the other is among it, more on a machine that is busy.
  EXPECT_LT(of_idle, of_busy / 2);
  EXPECT_LE(of_idle + of_busy, CpuOfPod() + CpuOfPod() / 10);
  EXPECT_GE(of_busy, CpuOfPod() / 2);
}

TEST_P(GvisorPodStats, HaveTheTimeOfProcessesThatHaveEnded) {
  const std::string id = RunUntilReady("one",
                                       "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done & wait; "
                                       "echo ready; sleep 1000");
  EXPECT_GE(CpuOf(id), 100 * kMillisecond);
}

TEST_P(GvisorPodStats, HaveTheTimeOfTheOtherWhichHasGoneInNoOther) {
  const std::string idle = Run("idle", kIdle);
  const std::string busy = Run("busy", kBusy);
  ExpectUntil(busy, 1000 * kMillisecond);
  const uint64_t of_busy = CpuOf(busy);
  ASSERT_TRUE(cri().Stop(busy, std::chrono::seconds(0)));
  ASSERT_TRUE(cri().Remove(busy));
  const std::string next = Run("next", kIdle);
  EXPECT_LT(CpuOf(idle) + CpuOf(next), of_busy);
}

TEST_P(GvisorPodStats, NeverRunBackwards) {
  const std::string busy = Run("busy", kBusy);
  const std::string forks = Run("forks", {"sh", "-c", "while :; do sh -c :; done"});
  const std::string idle = Run("idle", kIdle);
  const std::array<std::string, 3> ids = {busy, forks, idle};
  std::array<uint64_t, 3> last = {};
  constexpr int kLooks = 60;
  for (int look = 0; look < kLooks; ++look) {
    if (look % 20 == 10) {
      ASSERT_NO_FATAL_FAILURE(KillEngine());
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint64_t now = CpuOf(ids[i]);
      EXPECT_GE(now, last[i]) << i << " at look " << look;
      last[i] = now;
    }
  }
}

TEST_P(GvisorPodStats, HaveMemoryWhereItIsAllocated) {
  const std::string small = Run("small", kIdle);
  const std::string large = RunUntilReady("large", kHolds40Mb);
  EXPECT_THAT(MemoryOf(large), AllOf(Ge(40 * kMb), Le(160 * kMb)));
  EXPECT_THAT(MemoryOf(small), AllOf(Ge(1U), Le(20 * kMb)));
}

TEST_P(GvisorPodStats, HaveFilesInMemoryWhereTheyAreWritten) {
  const std::string small = Run("small", kIdle);
  const std::string large =
      RunUntilReady("large", "head -c 40000000 /dev/zero >/tmp/file; echo ready; sleep 1000");
  EXPECT_GE(MemoryOf(large), 40 * kMb);
  EXPECT_LE(MemoryOf(small), 20 * kMb);
}

/// The field of a message that is a message, a text or bytes.
std::string FieldOf(const std::string& message, uint32_t field) {
  ProtoReader in(message);
  while (in.Next()) {
    if (in.field() == field && in.is_bytes()) {
      return in.text();
    }
  }
  ADD_FAILURE() << "no field " << field;
  return {};
}

uint64_t NumberOf(const std::string& message, uint32_t field) {
  ProtoReader in(message);
  while (in.Next()) {
    if (in.field() == field && !in.is_bytes()) {
      return in.number();
    }
  }
  return 0;
}

/// What a pod uses in all, by the kernel's account of its cgroup.
TEST_P(GvisorPodStats, AreOfThePodItselfItsCgroups) {
  if (is_podsandbox()) {
    GTEST_SKIP() << "of a pod with a pause container containerd asks no shim";
  }
  const std::string id = RunUntilReady("one", kHolds40Mb);
  const auto sockets = ListFolder(settings().run_dir + "/s");
  ASSERT_EQ(sockets.size(), 1U);
  auto client = rpc::BlockingClient::Connect(settings().run_dir + "/s/" + sockets[0]);
  ASSERT_TRUE(client) << client.error().message;
  ProtoWriter request;
  request.Text(1, pod_);
  const auto answer =
      client->Call("containerd.runtime.sandbox.v1.Sandbox", "SandboxMetrics", request.str(),
                   kDeadline, {{std::string(rpc::kNamespaceKey), "k8s.io"}});
  ASSERT_TRUE(answer) << answer.error().message;
  const std::string any = FieldOf(FieldOf(*answer, 1), 3);
  const bool is_v2 = FieldOf(any, 1) == "io.containerd.cgroups.v2.Metrics";
  const std::string memory = FieldOf(FieldOf(any, 2), 4);
  constexpr uint32_t kUsageV1 = 33;
  constexpr uint32_t kUsageV2 = 32;
  const uint64_t bytes =
      is_v2 ? NumberOf(memory, kUsageV2) : NumberOf(FieldOf(memory, kUsageV1), 2);
  EXPECT_GT(bytes, MemoryOf(id)) << "the sentry's own is in it";
}

class GvisorStats : public GvisorTest {
 protected:
  static Output Metrics(const std::string& id) {
    return Ctr({"tasks", "metrics", "--format", "json", id});
  }

  /// containerd asks once more when it has ended, and makes a warning of an error.
  static void ExpectEnded(const std::string& id) {
    const Output metrics = Metrics(id);
    EXPECT_EQ(metrics.status, 0) << metrics.Text();
    EXPECT_THAT(metrics.out, HasSubstr("\"cpu\"")) << metrics.Text();
    EXPECT_THAT(metrics.out, Not(HasSubstr("\"current\": 1"))) << metrics.Text();
  }
};

TEST_F(GvisorStats, OfOneThatHasEndedAreWhatItHadUsed) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  StartDetached(further, {"true"}, AsFurther(root));
  ASSERT_TRUE(WaitForState(further, "STOPPED"));
  ExpectEnded(further);
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", root}).status, 0);
  ASSERT_TRUE(WaitForState(root, "STOPPED"));
  ExpectEnded(root);
  ExpectEnded(further);
  Remove(further);
  Remove(root);
}

TEST_F(GvisorStats, AreThereWhereTheNodeHasManyInterfaces) {
  // More than the sentry reads of /proc/net/dev, which is 4 KiB.
  Program node({"unshare", "--net", "sh", "-c",
                "for i in $(seq 40); do ip link add a$i type veth peer name b$i || exit; done; "
                "echo up; exec sleep 1000"});
  if (!node.ReadUntil("up\n")) {
    GTEST_SKIP() << "no network namespaces here: " << node.err();
  }
  const std::string id = Id();
  Words flags = WithOptions("[runsc_config]\nnetwork = \"host\"\n");
  flags.insert(flags.end(), {"--with-ns", Format("network:/proc/{}/ns/net", node.pid())});
  StartDetached(id, {"sleep", "1000"}, flags);
  const Output metrics = Metrics(id);
  EXPECT_EQ(metrics.status, 0) << metrics.Text();
  EXPECT_THAT(metrics.out, HasSubstr("\"current\":")) << metrics.Text();
  Remove(id);
}

TEST_F(GvisorStats, AreThereWhileItStandsStill) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  const Output metrics = Metrics(id);
  EXPECT_EQ(metrics.status, 0) << metrics.Text();
  EXPECT_THAT(metrics.out, HasSubstr("\"current\":")) << metrics.Text();
  ASSERT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
