// SPDX-License-Identifier: Apache-2.0
//
// A sentry has never a call that starts a process and one that brings all to a stop at the
// same time: that would end it.
#include "plugins/gvisor/sentry/call_slots.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "plugins/gvisor/sentry/sentry.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;
using urpc::Cause;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

/// What cannot be had at once is not waited for.
Deadline Now() { return std::chrono::steady_clock::now(); }

/// Long enough for a call that is answered, too short for who waits.
Deadline Shortly() { return Now() + std::chrono::milliseconds(100); }

class CallSlotsTest : public testing::Test {
 protected:
  bool CanTake(CallKind kind) { return slots_.Take(kind, Now()).has_value(); }

  FakeSandboxContext context_;
  CallSlots slots_;
};

TEST_F(CallSlotsTest, OfOneKindAreHadSideBySide) {
  for (const CallKind kind : {CallKind::kExec, CallKind::kStandstill}) {
    const auto first = slots_.Take(kind, Now());
    ASSERT_TRUE(first);
    EXPECT_TRUE(CanTake(kind));
  }
}

TEST_F(CallSlotsTest, OfTheOtherKindComeAfterwards) {
  constexpr std::array kStarts = {CallKind::kExec, CallKind::kStart};
  constexpr std::array kStandstills = {CallKind::kStandstill, CallKind::kSignalAll};
  for (const auto& [some, others] : {std::pair(kStarts, kStandstills), {kStandstills, kStarts}}) {
    for (const CallKind one : some) {
      for (const CallKind other : others) {
        auto first = slots_.Take(one, Now());
        ASSERT_TRUE(first);
        {
          const CallSlots::Slot moved = *std::move(first);
          const auto second = slots_.Take(other, Now());
          ASSERT_FALSE(second);
          EXPECT_EQ(second.error().cause, Cause::kDeadline);
          EXPECT_EQ(second.error().code, Code::kDeadlineExceeded);
        }
        EXPECT_TRUE(CanTake(other));
      }
    }
  }
}

/// Starts of containers, and signals to all: what else there is goes on beside them.
TEST_F(CallSlotsTest, OfSomeKindsAreHadOneAtATime) {
  const std::array<std::pair<CallKind, CallKind>, 2> kinds = {
      {{CallKind::kStart, CallKind::kExec}, {CallKind::kSignalAll, CallKind::kStandstill}}};
  for (const auto& [alone, beside] : kinds) {
    {
      const auto first = slots_.Take(alone, Now());
      ASSERT_TRUE(first);
      EXPECT_FALSE(CanTake(alone));
      EXPECT_TRUE(CanTake(beside));
    }
    EXPECT_TRUE(CanTake(alone));
  }
}

TEST_F(CallSlotsTest, OfStartsComeBehindAStandstillThatWaits) {
  auto start = slots_.Take(CallKind::kStart, Now());
  ASSERT_TRUE(start);
  auto waits = std::async(std::launch::async, [this] {
    return slots_.Take(CallKind::kStandstill, Soon()).has_value();
  });
  const Deadline limit = Soon();
  while (CanTake(CallKind::kStart) && Now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(CanTake(CallKind::kStart));
  {
    const CallSlots::Slot ends = *std::move(start);
  }
  EXPECT_TRUE(waits.get());
  EXPECT_TRUE(CanTake(CallKind::kStart));
}

TEST_F(CallSlotsTest, OfAStandstillThatGaveUpHoldNobodyUp) {
  const auto start = slots_.Take(CallKind::kExec, Now());
  ASSERT_TRUE(start);
  EXPECT_FALSE(CanTake(CallKind::kStandstill));
  EXPECT_TRUE(CanTake(CallKind::kExec));
}

TEST_F(CallSlotsTest, OfACallWithoutAnAnswerEndWithIt) {
  std::array<int, 2> pair = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  UniqueFd sentry(pair[1]);
  slots_.Leave(*slots_.Take(CallKind::kExec, Now()),
               DurableCall::NotStored(context_, urpc::Connection(UniqueFd(pair[0]))));
  EXPECT_FALSE(CanTake(CallKind::kStandstill));
  EXPECT_TRUE(CanTake(CallKind::kExec));
  auto waits = std::async(std::launch::async, [this] {
    return slots_.Take(CallKind::kStandstill, Soon()).has_value();
  });
  // It has gone, and answers nothing any more.
  sentry.reset();
  EXPECT_TRUE(waits.get());
}

/// Signals are had nevertheless: they are what ends a sentry that hangs.
TEST_F(CallSlotsTest, AreNotHadForEverByASentryThatAnswersNothing) {
  std::vector<UniqueFd> ends;
  for (size_t i = 0; i < CallSlots::kMaxLeft; ++i) {
    std::array<int, 2> pair = {};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    ends.emplace_back(pair[1]);
    auto slot = slots_.Take(CallKind::kStandstill, Now());
    ASSERT_TRUE(slot) << i;
    slots_.Leave(*std::move(slot),
                 DurableCall::NotStored(context_, urpc::Connection(UniqueFd(pair[0]))));
  }
  EXPECT_FALSE(CanTake(CallKind::kStandstill));
  EXPECT_TRUE(CanTake(CallKind::kSignalAll));
  ends.pop_back();
  EXPECT_TRUE(CanTake(CallKind::kStandstill));
}

/// The sentry as the backend asks it.
class SentryTurnsTest : public testing::Test {
 protected:
  SentryTurnsTest() { Restart(); }

  ~SentryTurnsTest() override { Answer(); }

  /// The engine is killed, and the next one comes.
  void Restart(SentryState state = {.started = true, .wanted = {}, .stopped = false}) {
    sentry_ = std::make_shared<Sentry>(context_, "root", socket_,
                                       [](const SentryState&) { return Status(); });
    EXPECT_TRUE(sentry_->Recover(std::move(state), Soon()));
  }

  Status Start(Deadline deadline) {
    const auto started =
        sentry_->Start({.id = "c1", .spec_json = "{}", .conf_json = "{}", .mounts = {}}, {},
                       {.start = "start", .wait = "wait"}, deadline);
    return started ? Status() : Status(std::unexpected(started.error()));
  }

  Status Execute(Deadline deadline) {
    ExecArgs args;
    args.container = "c1";
    const auto done = sentry_->Execute(args, {}, deadline);
    return done ? Status() : Status(std::unexpected(urpc::ToError(done.error())));
  }

  Status SignalAll(Deadline deadline) {
    const auto done = sentry_->SignalAll("c1", SIGTERM, deadline);
    return done ? Status() : Status(std::unexpected(urpc::ToError(done.error())));
  }

  Status Checkpoint(Deadline deadline) {
    return sentry_->Checkpoint("{}", {}, [] { return Status(); }, false, deadline);
  }

  /// It answers that call when it is told to.
  void Hold(std::string method) {
    const std::lock_guard lock(mutex_);
    held_ = std::move(method);
  }

  void Answer() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(held_, "").empty()) {
      answers_.release();
    }
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  FakeAnswer Handle(const std::string& method) {
    const std::string name = method.substr(method.find('.') + 1);
    if (name == "Wait" || name == "HasAnythingBeenSent") {
      return name == "Wait" ? FakeAnswer() : FakeAnswer::Refusing("unknown method");
    }
    std::string refused;
    bool held = false;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(name);
      held = name == held_;
      refused = refused_;
    }
    if (held) {
      answers_.acquire();
    }
    return name == refused ? FakeAnswer::Refusing("no such file or directory") : FakeAnswer::Of(7);
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string socket_ = folder_.path() + "/sentry.sock";
  FakeSandboxContext context_;
  /// Guards what follows.
  std::mutex mutex_;
  std::string held_;
  std::string refused_;
  std::vector<std::string> asked_;
  std::counting_semaphore<> answers_{0};
  FakeSentry server_{socket_, [this](const Json& request, std::vector<UniqueFd>&) {
                       return Handle(request["method"]);
                     }};
  std::shared_ptr<Sentry> sentry_;
};

TEST_F(SentryTurnsTest, StandstillsWaitForAStart) {
  Hold("StartSubcontainer");
  EXPECT_EQ(Start(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(sentry_->Pause("c1", Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(Checkpoint(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), ElementsAre("StartSubcontainer"));
  Answer();
  EXPECT_TRUE(SignalAll(Soon()));
  EXPECT_TRUE(Checkpoint(Soon()));
}

TEST_F(SentryTurnsTest, StandstillsWaitForAnExec) {
  Hold("ExecuteAsync");
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), ElementsAre("ExecuteAsync"));
  Answer();
  EXPECT_TRUE(SignalAll(Soon()));
}

TEST_F(SentryTurnsTest, StartsWaitForASignalToAll) {
  Hold("Signal");
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  const Status started = Start(Shortly());
  EXPECT_EQ(started.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(started.error().message, HasSubstr("start container 'c1'"));
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), ElementsAre("Signal"));
  Answer();
  EXPECT_TRUE(Start(Soon()));
  EXPECT_TRUE(Execute(Soon()));
}

TEST_F(SentryTurnsTest, ExecsWaitForTheResumeAfterAPauseThatWasLate) {
  Hold("Pause");
  EXPECT_EQ(sentry_->Pause("c1", Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), Not(Contains("ExecuteAsync")));
  // Whose pause is ended comes to no end itself.
  EXPECT_TRUE(sentry_->Resume("c1", Soon()));
  EXPECT_TRUE(Execute(Soon()));
}

/// Whether the pause that the engine before this one asked for was answered is not known.
TEST_F(SentryTurnsTest, ExecsWaitForTheResumeInASandboxThatIsFoundPaused) {
  Restart({.started = true, .wanted = {"c1"}, .stopped = true});
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(sentry_->Resume("c1", Soon()));
  EXPECT_TRUE(Execute(Soon()));
}

TEST_F(SentryTurnsTest, ExecsGoOnInASandboxThatIsPaused) {
  EXPECT_TRUE(sentry_->Pause("c1", Soon()));
  EXPECT_TRUE(Execute(Soon()));
}

TEST_F(SentryTurnsTest, StartsWaitForACheckpoint) {
  Hold("Checkpoint");
  EXPECT_EQ(Checkpoint(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  Restart();
  EXPECT_EQ(Execute(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(SignalAll(Soon())) << "what kills waits for none";
  Answer();
  EXPECT_TRUE(Execute(Soon()));
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(SentryTurnsTest, ASignalToAllWaitsForTheOneBefore) {
  Hold("Signal");
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), ElementsAre("Signal"));
  Answer();
  EXPECT_TRUE(SignalAll(Soon()));
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(SentryTurnsTest, WhatWasLateIsLetGoWhenTheRootHasEnded) {
  Hold("Signal");
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  sentry_->Hangup();
  EXPECT_THAT(context_.stored, IsEmpty());
  EXPECT_TRUE(Execute(Soon()));
}

TEST_F(SentryTurnsTest, AStartThatFailsLateIsForgottenBeforeTheNext) {
  refused_ = "StartSubcontainer";
  Hold("StartSubcontainer");
  EXPECT_EQ(Start(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(Start(Shortly()).error().code, Code::kDeadlineExceeded);
  Answer();
  EXPECT_FALSE(Start(Soon()));
  EXPECT_THAT(asked(), ElementsAre("StartSubcontainer", "DestroySubcontainer", "StartSubcontainer",
                                   "DestroySubcontainer"));
}

/// It takes up both: how it was started, and that it is to be asked how it ends.
TEST_F(SentryTurnsTest, AStartThatIsLateStaysStoredForTheNextEngine) {
  Hold("StartSubcontainer");
  EXPECT_EQ(Start(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(context_.stored,
              UnorderedElementsAre(Pair("start", testing::_), Pair("wait", testing::_)));
  Answer();
  // This one's turn comes with the answer.
  EXPECT_TRUE(SignalAll(Soon()));
  EXPECT_THAT(context_.stored,
              UnorderedElementsAre(Pair("start", testing::_), Pair("wait", testing::_)));
}

TEST_F(SentryTurnsTest, StartsOfTheNextEngineWaitForASignalOfThisOne) {
  Hold("Signal");
  EXPECT_EQ(SignalAll(Shortly()).error().code, Code::kDeadlineExceeded);
  Restart();
  EXPECT_EQ(Start(Shortly()).error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(asked(), ElementsAre("Signal"));
  Answer();
  EXPECT_TRUE(Start(Soon()));
}

TEST_F(SentryTurnsTest, NothingOfASignalIsStoredWhenItIsAnswered) {
  EXPECT_TRUE(SignalAll(Soon()));
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(SentryTurnsTest, WhatCouldNotBeStartedIsForgottenBeforeTheNextStart) {
  refused_ = "StartSubcontainer";
  EXPECT_FALSE(Start(Soon()));
  EXPECT_THAT(context_.stored, IsEmpty());
  EXPECT_FALSE(Start(Soon()));
  EXPECT_THAT(asked(), ElementsAre("StartSubcontainer", "DestroySubcontainer", "StartSubcontainer",
                                   "DestroySubcontainer"));
}

}  // namespace
}  // namespace gantry::gvisor
