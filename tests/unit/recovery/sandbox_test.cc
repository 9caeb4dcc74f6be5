// SPDX-License-Identifier: Apache-2.0
//
// The process that a sandbox has: found again by every engine, whichever of its
// containers are left; named to the keeper, who kills it where the engine hangs;
// and killed where no backend has it any more. And what is stored for a sandbox: it
// goes with it, whichever engine has stored it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "core/link/messages.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SandboxProcess : public TaskTest {
 protected:
  SandboxProcess() { backend_.StartServers(); }

  ProcessId Server() const { return keeper_.named.at("1/sandbox/server"); }

  /// The pids that the keeper would kill for this instance.
  std::vector<int32_t> Doomed(uint64_t instance) {
    Settle();
    std::vector<int32_t> pids;
    for (const link::ProcessRef& process : keeper_.last_resorts[instance].processes) {
      pids.push_back(process.pid);
    }
    return pids;
  }
};

TEST_F(SandboxProcess, IsNamedToTheKeeper) {
  Run("c1");
  EXPECT_THAT(Doomed(1), ElementsAre(Server().pid));
  RestartEngine();
  ASSERT_TRUE(State("c1"));
  EXPECT_THAT(Doomed(1), ElementsAre(Server().pid));
}

TEST_F(SandboxProcess, IsRememberedNoLongerThanItsSandbox) {
  Run("c1");
  keeper_.End(Server(), 0);
  End("c1", 0);
  ASSERT_TRUE(Delete("c1"));
  Settle();
  EXPECT_THAT(keeper_.ended_names, IsEmpty());
}

TEST_F(SandboxProcess, DiesWithThePodAndNotWithOneOfItsContainers) {
  Run("pod");
  Run("a", "pod");
  EXPECT_THAT(Doomed(1), ElementsAre(Server().pid));
  EXPECT_THAT(Doomed(2), IsEmpty());
  End("pod", 0);
  ASSERT_TRUE(Delete("pod"));
  EXPECT_THAT(Doomed(2), ElementsAre(Server().pid)) << "the last one";
}

TEST_F(SandboxProcess, IsFoundAgainWithoutTheContainerThatItWasMadeFor) {
  Run("pod");
  Run("a", "pod");
  End("pod", 0);
  ASSERT_TRUE(Delete("pod"));
  for (int i = 0; i < 2; ++i) {
    RestartEngine();
    EXPECT_EQ(State("a")->status(), pb::RUNNING);
    EXPECT_EQ(RecordOf("a").sandbox_prefix, "1/sandbox");
  }
  Run("b", "pod");
  EXPECT_EQ(RecordOf("b").sandbox_prefix, "1/sandbox");
}

/// Its name stands where that of a sandbox could.
TEST_F(SandboxProcess, IsNotTakenForTheStreamsOfAnExecOfThatName) {
  Run("pod");
  Run("a", "pod");
  pb::ExecProcessRequest request;
  request.set_id("a");
  request.set_exec_id("sandbox");
  request.set_stdin(dir_.path() + "/in");
  request.mutable_spec()->set_value(R"({"args":["/bin/true"],"cwd":"/"})");
  ASSERT_EQ(mkfifo(request.stdin().c_str(), 0600), 0);
  const UniqueFd client(open(request.stdin().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(Ask<wire::Empty>("Exec", request, "a"));
  ASSERT_TRUE(Start("a/sandbox"));
  ASSERT_TRUE(keeper_.stored.contains("2/sandbox/io/stdin-w"));
  RestartEngine();
  ASSERT_EQ(State("a/sandbox")->status(), pb::RUNNING);
  Settle();
  EXPECT_TRUE(keeper_.stored.contains("2/sandbox/io/stdin-w"));
}

TEST_F(SandboxProcess, DiesWithTheLastOfAGroupThatIsNoPod) {
  Run("a", "group");
  Run("b", "group");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Doomed(1), IsEmpty());
    EXPECT_THAT(Doomed(2), IsEmpty());
    RestartEngine();
    ASSERT_TRUE(State("a") && State("b"));
  }
  End("a", 0);
  ASSERT_TRUE(Delete("a"));
  EXPECT_THAT(Doomed(2), ElementsAre(Server().pid));
}

TEST_F(SandboxProcess, IsFoundAgainAfterAShortage) {
  Run("c1");
  for (const char* const call : {"recover sandbox c1", "recover c1"}) {
    const size_t before = backend_.Count(call);
    backend_.FailNext(call, Error{Code::kResourceExhausted, 0, "no descriptors", {}});
    RestartEngine();
    EXPECT_EQ(State("c1")->status(), pb::RUNNING);
    EXPECT_EQ(backend_.Count(call), before + 2);
    EXPECT_THAT(Doomed(1), ElementsAre(Server().pid));
  }
  End("c1", 0);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(SandboxProcess, StaysWithAContainerThatRunsWithoutABackend) {
  Run("c1");
  backend_.BindTo("c2", HostPid{704});
  const ProcessId process = keeper_.AddOrphan(704);
  Run("c2");
  const ProcessId server = keeper_.named.at("2/sandbox/server");
  around_.backend_error = "no such file";
  RestartEngine();
  EXPECT_EQ(State("c2")->status(), pb::RUNNING);
  EXPECT_FALSE(std::ranges::contains(keeper_.acknowledged, server));
  keeper_.End(process, SIGKILL);
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c2"))->exit_status(), 137U);
  EXPECT_TRUE(Delete("c2"));
  EXPECT_TRUE(Until([&] { return std::ranges::contains(keeper_.acknowledged, server); }));
}

TEST_F(SandboxProcess, EndsWhereNoBackendHasTheSandboxAnyMore) {
  Run("c1");
  const ProcessId server = Server();
  around_.backend_error = "no such file";
  RestartEngine();
  EXPECT_EQ(TakeAs<pb::WaitResponse>(SendWait("c1"))->exit_status(), 255U);
  EXPECT_TRUE(Until([&] { return std::ranges::contains(keeper_.acknowledged, server); }));
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(SandboxProcess, TakesAlongWhatAnEngineBeforeHasStored) {
  Run("c1");
  // Its backend does not ask for it again.
  keeper_.stored["1/sandbox/backend/wait"] = UniqueFd(dup(0));
  RestartEngine();
  ASSERT_TRUE(State("c1"));
  EXPECT_TRUE(keeper_.stored.contains("1/sandbox/backend/wait"));
  End("c1", 0);
  ASSERT_TRUE(Delete("c1"));
  EXPECT_TRUE(Until([this] { return !keeper_.stored.contains("1/sandbox/backend/wait"); }));
}

}  // namespace
}  // namespace gantry::task
