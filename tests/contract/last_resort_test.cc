// SPDX-License-Identifier: Apache-2.0
//
// containerd gives a container up (the shim's `delete`) while the engine works,
// is dead, or hangs; and sandboxes and pids that die from outside.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;

class LastResort : public ContractTest {
 protected:
  /// The pid that containerd sees; whatever it stands for must end.
  static pid_t PidOf(const Box& box) {
    const auto state = box.State();
    EXPECT_OK(state);
    return state ? static_cast<pid_t>(state->pid()) : 0;
  }
};

TEST_P(LastResort, WithTheEngine) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sleep", "1000"}));
  ASSERT_OK(box.Start("x1"));
  const pid_t pid = PidOf(box);
  const auto deleted = node().ShimDelete(box.id(), box.bundle());
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->status, 137U);
  EXPECT_EQ(deleted->pid, static_cast<uint32_t>(pid));
  EXPECT_TRUE(e2e::WaitGone(pid));
}

TEST_P(LastResort, OfWhatWasNeverCreated) {
  Box& box = Announced();
  const auto deleted = node().ShimDelete(box.id(), box.bundle());
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->pid, link::kNoPid);
}

TEST_P(LastResort, OfWhatHasEndedSaysHow) {
  Box& box = Stopped();
  const auto deleted = node().ShimDelete(box.id(), box.bundle());
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->status, 7U);
}

TEST_P(LastResort, AfterDeleteSaysHowAgain) {
  Box& box = Stopped();
  ASSERT_OK(box.Delete());
  const auto deleted = node().ShimDelete(box.id(), box.bundle());
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->status, 7U);
}

TEST_P(LastResort, WithAnEngineThatHangs) {
  Box& box = Running();
  const pid_t pid = PidOf(box);
  const pid_t engine = node().Engine();
  EXPECT_TRUE(Signal(engine, SIGSTOP));
  // How long it waits for the engine: DeletesTest.ASilentEngineLeavesTimeToEndAll.
  const auto deleted = node().ShimDelete(box.id(), box.bundle());
  ASSERT_OK(deleted);
  EXPECT_TRUE(e2e::WaitGone(pid)) << "its processes must not outlive it";
  EXPECT_TRUE(Signal(engine, SIGCONT));
  EXPECT_OK(Running({.args = {"true"}}, "-after").Wait());
}

TEST_P(LastResort, TheDeathOfThePidEndsTheContainer) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sleep", "1000"}));
  ASSERT_OK(box.Start("x1"));
  EXPECT_TRUE(Signal(PidOf(box), SIGKILL));
  const auto exec = box.Wait("x1");
  ASSERT_OK(exec);
  EXPECT_EQ(exec->exit_status(), 137U);
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_EQ(Got(box.State()).status(), pb::STOPPED);
  EXPECT_CODE(box.Kill(SIGKILL), kNotFound);
  EXPECT_OK(box.Kill(SIGKILL, "", true));
  EXPECT_OK(box.Delete("x1"));
  EXPECT_OK(box.Delete());
  EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 7),
              ElementsAre("create", "start", "exec-added(x1)", "exec-started(x1)", "exit(x1)",
                          "exit", "delete"));
}

TEST_P(LastResort, TheDeathOfThePidWhileTheEngineIsAwayIsSeen) {
  Box& box = Running();
  const pid_t pid = PidOf(box);
  EXPECT_TRUE(Signal(node().Engine(), SIGSTOP));
  EXPECT_TRUE(Signal(pid, SIGKILL));
  node().KillEngine();
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_OK(box.Delete());
}

TEST_P(LastResort, TheDeathOfThePidBeforeStartIsSeen) {
  Box& box = Created();
  EXPECT_TRUE(Signal(PidOf(box), SIGKILL));
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_CODE(box.Start(), kFailedPrecondition);
  EXPECT_OK(box.Delete());
}

/// Containers that share a sandbox and a socket.
class Groups : public ContractTest {
 protected:
  Box& Member(const std::string& suffix, const std::string& group) {
    Json annotations = Json::object();
    annotations["annotations"]["io.containerd.runc.v2.group"] = group;
    return Running({.group = group, .spec = annotations}, suffix);
  }

  /// Where the sandbox is the first container's, that one's removal is the end of all, or its end
  /// is.
  static bool EndsWithTheFirst(const Box& second) {
    if (IsSupported(backend(), kWithoutTheFirst)) {
      return false;
    }
    EXPECT_EQ(Got(second.Wait()).exit_status(), 137U);
    EXPECT_EQ(Got(second.State()).status(), pb::STOPPED);
    return true;
  }
};

TEST_P(Groups, ShareASocketAndEndApart) {
  Box& first = Member("-a", Id("-a"));
  Box& second = Member("-b", Id("-a"));
  EXPECT_EQ(first.client().path(), second.client().path());
  ASSERT_OK(first.Kill(SIGKILL));
  ASSERT_OK(first.Wait());
  if (IsSupported(backend(), kWithoutTheFirst)) {
    EXPECT_EQ(Got(second.State()).status(), pb::RUNNING);
  }
  ASSERT_OK(first.Delete());
  if (EndsWithTheFirst(second)) {
    return;
  }
  EXPECT_EQ(Got(second.State()).status(), pb::RUNNING);
  ASSERT_OK(second.Exec("x1", {"true"}));
  ASSERT_OK(second.Start("x1"));
  ASSERT_OK(second.Wait("x1"));
}

TEST_P(Groups, AreRecoveredTogether) {
  Box& first = Member("-a", Id("-a"));
  Box& second = Member("-b", Id("-a"));
  node().KillEngine();
  for (Box* box : {&second, &first}) {
    EXPECT_EQ(Got(box->State()).status(), pb::RUNNING);
    ASSERT_OK(box->Kill(SIGKILL));
    const auto ended = box->Wait();
    ASSERT_OK(ended);
    EXPECT_EQ(ended->exit_status(), 137U);
  }
}

TEST_P(Groups, AreRecoveredWithoutTheirFirst) {
  Box& first = Member("-a", Id("-a"));
  Box& second = Member("-b", Id("-a"));
  ASSERT_OK(first.Kill(SIGKILL));
  ASSERT_OK(first.Wait());
  ASSERT_OK(first.Delete());
  ASSERT_OK(node().ShimDelete(first.id(), first.bundle()));
  node().KillEngine();
  if (EndsWithTheFirst(second)) {
    return;
  }
  EXPECT_EQ(Got(second.State()).status(), pb::RUNNING);
  ASSERT_OK(second.Exec("x1", {"true"}));
  ASSERT_OK(second.Start("x1"));
  ASSERT_OK(second.Wait("x1"));
  ASSERT_OK(second.Kill(SIGKILL));
  const auto ended = second.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
}

INSTANTIATE_CONTRACT(LastResort);
INSTANTIATE_CONTRACT(Groups);

}  // namespace
}  // namespace gantry::contract
