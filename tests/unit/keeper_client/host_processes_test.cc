// SPDX-License-Identifier: Apache-2.0
#include "core/keeper_client/host_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/pidfd.h>

#include "core/link/messages.h"
#include "tests/unit/keeper_client/engine_test.h"
#include "tests/unit/os/few_descriptors.h"

namespace gantry::keeper_client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Above what the kernel gives (PID_MAX_LIMIT).
constexpr int32_t kNobody = 1 << 23;

class HostProcessesTest : public EngineTest {
 protected:
  WatchedProcessPtr Spawn(const std::string& tag = "") {
    auto process = Await(processes_->Spawn(Request("/bin/x", tag)));
    EXPECT_TRUE(process);
    return std::move(*process);
  }

  WatchedProcessPtr Adopt(int32_t pid, uint64_t start_time = 0) {
    auto process = Await(processes_->Adopt(HostPid{pid}, start_time));
    return process ? std::move(*process) : nullptr;
  }

  bool EndAndSee(ProcessId process, int wait_status) {
    keeper_.End(process, wait_status);
    return Until([&] { return Saw("exit " + std::to_string(process.pid)); });
  }
};

TEST_F(HostProcessesTest, GiveTheEndToTheHolder) {
  const auto process = Spawn();
  EXPECT_FALSE(process->Ended());
  ASSERT_TRUE(EndAndSee(process->id(), 3 << 8));
  ASSERT_TRUE(process->Ended());
  EXPECT_EQ(process->Ended()->code(), 3U);
}

TEST_F(HostProcessesTest, CallBackOnce) {
  const auto process = Spawn();
  int calls = 0;
  process->OnEnd([&](WaitStatus status) {
    ++calls;
    EXPECT_EQ(status.code(), 137U);
  });
  ASSERT_TRUE(EndAndSee(process->id(), SIGKILL));
  keeper_.End(process->id(), SIGKILL);
  keeper_.Announce("mark", "/b");
  ASSERT_TRUE(Until([this] { return Saw("added mark"); }));
  EXPECT_EQ(calls, 1);
}

TEST_F(HostProcessesTest, CallBackAtOnceForWhatHasEnded) {
  const auto process = Spawn();
  ASSERT_TRUE(EndAndSee(process->id(), 0));
  bool called = false;
  process->OnEnd([&](WaitStatus) { called = true; });
  EXPECT_TRUE(called);
}

TEST_F(HostProcessesTest, WakeAWorkerThatWaits) {
  const auto process = Spawn();
  auto waiting =
      std::async(std::launch::async, [&] { return process->Wait(std::chrono::seconds(10)); });
  ASSERT_TRUE(EndAndSee(process->id(), 5 << 8));
  const auto status = waiting.get();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code(), 5U);
}

TEST_F(HostProcessesTest, SayThatAProcessStillRuns) {
  const auto process = Spawn();
  const auto status = process->Wait(std::chrono::milliseconds(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDeadlineExceeded);
}

TEST_F(HostProcessesTest, DoNotSignalWhatHasEnded) {
  const auto process = Spawn();
  ASSERT_TRUE(EndAndSee(process->id(), 0));
  const Status sent = process->Signal(SIGTERM);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::kNotFound);
}

TEST_F(HostProcessesTest, SignalARealProcessThroughItsPidfd) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  const auto start_time = StartTimeOf({child});
  ASSERT_TRUE(start_time);
  keeper_.AddOrphan(child, *start_time);
  const auto process = Adopt(child);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->start_time(), *start_time);
  EXPECT_TRUE(process->Signal(SIGKILL));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(HostProcessesTest, AreSignalledWhereThereAreNoDescriptors) {
  const ProcessId own{getpid(), StartTimeOf({getpid()}).value_or(0)};
  keeper_.AddOrphan(own.pid, own.start_time);
  const auto process = Adopt(own.pid, own.start_time);
  ASSERT_TRUE(process);
  const int next = UniqueFd(dup(0)).get();
  const test::FewDescriptors few(static_cast<rlim_t>(next));
  const Status sent = process->Signal(0);
  EXPECT_TRUE(sent) << sent.error().message;
}

TEST_F(HostProcessesTest, AreTheSameForEveryoneWhoAsks) {
  keeper_.AddOrphan(40, 4);
  const auto first = Adopt(40);
  EXPECT_EQ(first, Adopt(40, 4));
}

TEST_F(HostProcessesTest, GiveAnEndThatCameBeforeTheAdoption) {
  keeper_.AddOrphan(41, 4);
  ASSERT_TRUE(EndAndSee({41, 4}, 9 << 8));
  const auto process = Adopt(41);
  ASSERT_TRUE(process);
  ASSERT_TRUE(process->Ended());
  EXPECT_EQ(process->Ended()->code(), 9U);
}

TEST_F(HostProcessesTest, AreThereWithoutAQuestionWhereTheKeeperWatchesThem) {
  const ProcessId own{getpid(), 4};
  keeper_.Tell(link::Watched{{{own.pid, own.start_time}}});
  Await(link_->Sync());
  keeper_.silent = {link::Type::kAdopt};
  const auto process = Adopt(own.pid, own.start_time);
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->Ended());
  ASSERT_TRUE(EndAndSee(own, 9 << 8));
  EXPECT_EQ(process->Ended()->code(), 9U);
}

TEST_F(HostProcessesTest, AreAskedForWhereTheyAreGone) {
  keeper_.Tell(link::Watched{{{kNobody, 4}}});
  Await(link_->Sync());
  EXPECT_EQ(Adopt(kNobody, 4), nullptr) << "the keeper does not know it";
}

TEST_F(HostProcessesTest, TellAReusedPidApart) {
  keeper_.AddOrphan(42, 4);
  ASSERT_TRUE(EndAndSee({42, 4}, 9 << 8));
  keeper_.AddOrphan(42, 5);
  const auto process = Adopt(42, 5);
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->Ended());
  EXPECT_EQ(Adopt(43), nullptr);
}

TEST_F(HostProcessesTest, AcknowledgeWhatNobodyHoldsAnyMore) {
  auto process = Spawn();
  const ProcessId id = process->id();
  ASSERT_TRUE(EndAndSee(id, 0));
  EXPECT_THAT(keeper_.acknowledged, IsEmpty());
  process.reset();
  EXPECT_TRUE(Until([this] { return !keeper_.acknowledged.empty(); }));
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(id));
}

TEST_F(HostProcessesTest, LeaveWhatIsBoundToWhoWritesItDown) {
  auto process = Spawn();
  const ProcessId id = process->id();
  process->MarkBound(this);
  ASSERT_TRUE(EndAndSee(id, 0));
  EXPECT_TRUE(processes_->IsUnacknowledged(id));
  process.reset();
  test::RunAllReady(loop_);
  EXPECT_THAT(keeper_.acknowledged, IsEmpty());
  processes_->Release(id);
  EXPECT_TRUE(Until([this] { return !keeper_.acknowledged.empty(); }));
  EXPECT_FALSE(processes_->IsUnacknowledged(id));
}

TEST_F(HostProcessesTest, AreNotAcknowledgedWhileAnotherHoldsThem) {
  keeper_.AddOrphan(44, 4);
  auto first = Adopt(44);
  const auto second = Adopt(44);
  first.reset();
  test::RunAllReady(loop_);
  EXPECT_THAT(keeper_.acknowledged, IsEmpty());
}

TEST_F(HostProcessesTest, OfAnEngineBeforeAreForgottenWhereNobodyAsks) {
  const auto named = Spawn("create/c1");
  keeper_.End(named->id(), 0);
  for (const int32_t pid : {50, 51, 52}) {
    keeper_.End({pid, 4}, 0);
  }
  Connect();
  const auto asked = Adopt(50, 4);
  processes_->Claim({51, 4});
  ASSERT_TRUE(EndAndSee({53, 4}, 0)) << "of this engine";
  keeper_.acknowledged.clear();
  processes_->ReleaseUnclaimed();
  Await(link_->Sync());
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(ProcessId{52, 4}));
  EXPECT_EQ(asked->Ended()->code(), 0U);
  EXPECT_TRUE(processes_->IsUnacknowledged({51, 4}));
}

TEST_F(HostProcessesTest, OfAnEngineBeforeAreForgottenWhileTheyRun) {
  keeper_.watched = {{getpid(), 4}, {getppid(), 4}};
  Connect();
  const auto asked = Adopt(getpid(), 4);
  ASSERT_TRUE(asked);
  processes_->ReleaseUnclaimed();
  Await(link_->Sync());
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(ProcessId{getppid(), 4}));
}

TEST_F(HostProcessesTest, AreFoundByTheirTagAfterARestart) {
  const auto process = Spawn("create/c1");
  Connect();
  const auto found = processes_->FindSpawned("create/c1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id(), process->id());
  EXPECT_FALSE(processes_->FindSpawned("create/c1"));
  EXPECT_FALSE(processes_->FindSpawned("create/other"));
}

TEST_F(HostProcessesTest, AreFoundByTheirTagWithTheirEndOnceReleased) {
  const ProcessId id = Spawn("tag")->id();
  keeper_.End(id, 0);
  Connect();
  EXPECT_TRUE(Adopt(id.pid, id.start_time)) << "by its number";
  processes_->Release(id);
  const auto found = processes_->FindSpawned("tag");
  ASSERT_TRUE(found) << "it was spawned";
  EXPECT_TRUE(found->Ended());
  EXPECT_FALSE(processes_->FindSpawned("never"));
}

TEST_F(HostProcessesTest, AreFoundByTheirTagThoughAnEngineBeforeHasSeenTheirEnd) {
  ProcessId id;
  {
    const auto process = Spawn("tag");
    id = process->id();
    keeper_.End(id, 7 << 8);
    ASSERT_TRUE(Until([&] { return process->Ended().has_value(); }));
  }
  ASSERT_TRUE(Until([&] { return !keeper_.acknowledged.empty(); }));
  keeper_.acknowledged.clear();
  Connect();
  const auto found = processes_->FindSpawned("tag");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id(), id);
  ASSERT_TRUE(found->Ended());
  EXPECT_EQ(found->Ended()->code(), 7U);
  EXPECT_FALSE(processes_->FindSpawned("other")) << "never";
}

TEST_F(HostProcessesTest, AreFoundByTheTagThatTheyWereAdoptedUnder) {
  keeper_.AddOrphan(60, 6);
  const auto adopted = Await(processes_->Adopt(HostPid{60}, 0, "zygote/1"));
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(processes_->SpawnedBelow("zygote/").size(), 1U);
  Connect();
  const auto found = processes_->FindSpawned("zygote/1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id(), (ProcessId{60, 6}));
}

TEST_F(HostProcessesTest, AreNotAdoptedUnderATagThatTheKeeperDoesNotKeep) {
  keeper_.of_before = true;
  Connect();
  keeper_.AddOrphan(60, 6);
  const auto adopted = Await(processes_->Adopt(HostPid{60}, 0, "zygote/1"));
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, Code::kFailedPrecondition);
}

TEST_F(HostProcessesTest, AreFoundWithTheEndThatCameMeanwhile) {
  const auto process = Spawn("tag");
  keeper_.End(process->id(), 7 << 8);
  Connect();
  const auto found = processes_->FindSpawned("tag");
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->Ended());
  EXPECT_EQ(found->Ended()->code(), 7U);
}

}  // namespace
}  // namespace gantry::keeper_client
