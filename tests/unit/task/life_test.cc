// SPDX-License-Identifier: Apache-2.0
#include "core/task/life.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/async/loop.h"
#include "core/log/log.h"
#include "core/task/state.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::task {
namespace {

using Heard = ProcessLife::Heard;

constexpr ExitStatus kEnd{7, 1000};
constexpr ExitStatus kOther{9, 2000};

/// The lines that are logged as long as it lives.
class Lines {
 public:
  Lines() {
    log::SetSinkForTest([text = text_](std::string_view line) { *text += line; });
  }

  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  ~Lines() { log::SetSinkForTest({}); }

  const std::string& text() const { return *text_; }

 private:
  std::shared_ptr<std::string> text_ = std::make_shared<std::string>();
};

struct Transition {
  std::string name;
  std::function<bool(ProcessLife&)> take;
  /// Where each state leads, one letter each; '!' where it is not legal.
  std::string to;
  /// The same with an end that is known.
  std::string to_with_end;
  /// Where it is not legal it is only too late, and no mistake.
  bool may_be_late = false;
};

constexpr std::string_view kLetters = ".-cSrpTx";
constexpr std::array kAll = {State::kNone,    State::kCreating, State::kCreated, State::kStarting,
                             State::kRunning, State::kPaused,   State::kStopped, State::kDeleting};

char LetterOf(State state) {
  for (size_t i = 0; i < kAll.size(); ++i) {
    if (kAll[i] == state) {
      return kLetters[i];
    }
  }
  return '?';
}

const std::array<Transition, 15>& Transitions() {
  static const std::array<Transition, 15> kTable = {{
      {"create", [](ProcessLife& l) { return l.BeginCreate(); }, "-!!!!!!!", "-!!!!!!!"},
      {"created", [](ProcessLife& l) { return l.Created(); }, "cc!!!!!!", "cc!!!!!!"},
      {"begin start", [](ProcessLife& l) { return l.BeginStart(); }, "!!c!!!!!", "!!!!!!!!"},
      {"starting", [](ProcessLife& l) { return l.Starting(); }, "!!S!!!!!", "!!!!!!!!"},
      {"started", [](ProcessLife& l) { return l.Started(); }, "!!rr!!!!", "!!rr!!!!"},
      {"start failed", [](ProcessLife& l) { return l.StartFailed(false); }, "!!!!!!!!", "!!!!!!!!"},
      {"failed start",
       [](ProcessLife& l) {
         l.HoldEnds();
         return l.StartFailed(false);
       },
       "!!cc!!!!", "!!cc!!!!"},
      {"failed for good",
       [](ProcessLife& l) {
         l.HoldEnds();
         return l.StartFailed(false, kEnd);
       },
       "!!cc!!!!", "!!!!!!!!"},
      {"undo start", [](ProcessLife& l) { return l.UndoingStart(); }, "!!!SS!!!", "!!!SS!!!"},
      {"start undone", [](ProcessLife& l) { return l.StartUndone(); }, "!!!cc!!!", "!!!cc!!!"},
      {"pause", [](ProcessLife& l) { return l.Pause(); }, "!!!!p!!!", "!!!!p!!!", true},
      {"resume", [](ProcessLife& l) { return l.Resume(); }, "!!!!!r!!", "!!!!!r!!", true},
      {"delete", [](ProcessLife& l) { return l.Deleting(); }, "!xxxxxxx", "!xxxxxxx"},
      {"stopped", [](ProcessLife& l) { return l.Stopped(); }, "!!!!!!!!", ".TTTTTTT"},
      {"deleted",
       [](ProcessLife& l) {
         l.Deleted();
         return true;
       },
       "........", "........"},
  }};
  return kTable;
}

/// What the table says of `transition`, found out by taking it from each state.
std::string Taken(const Transition& transition, bool with_end) {
  std::string to;
  for (const State from : kAll) {
    ProcessLife life;
    life.Restore(from, with_end ? std::optional(kEnd) : std::nullopt, false);
    const Lines lines;
    const bool done = transition.take(life);
    to += done ? LetterOf(life.state()) : '!';
    EXPECT_TRUE(done || life.state() == from) << transition.name << ": nothing changes";
    EXPECT_EQ(lines.text().contains("not legal"), !done && !transition.may_be_late)
        << transition.name << " from " << store::StateName(from) << ": " << lines.text();
  }
  return to;
}

TEST(ProcessLife, TakesTheLegalTransitionsAndNoOther) {
  for (const Transition& transition : Transitions()) {
    EXPECT_EQ(Taken(transition, false), transition.to) << transition.name;
    EXPECT_EQ(Taken(transition, true), transition.to_with_end) << transition.name << ", ended";
  }
}

TEST(ProcessLife, IsRestoredOnlyWhereThereWasNothing) {
  const Lines lines;
  ProcessLife life;
  EXPECT_TRUE(life.Restore(State::kRunning, {}, false));
  EXPECT_FALSE(life.Restore(State::kCreated, {}, false));
  EXPECT_EQ(life.state(), State::kRunning);
}

TEST(ProcessLife, EndsAreHeldBackUntilTheStartIsPublished) {
  ProcessLife life;
  life.Created();
  ASSERT_TRUE(life.BeginStart());
  EXPECT_EQ(life.Hear(kEnd, false), Heard::kHeld);
  EXPECT_EQ(life.Hear(kOther, false), Heard::kHeld) << "the first one counts";
  EXPECT_TRUE(life.has_end());
  EXPECT_FALSE(life.exit());
  EXPECT_TRUE(life.Started());
  EXPECT_EQ(life.effective_state(), State::kRunning) << "as whoever called is about to hear";
  EXPECT_FALSE(life.may_run());
  const auto held = life.Release();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->status, kEnd.status);
  EXPECT_EQ(life.Hear(*held, false), Heard::kNew);
  EXPECT_EQ(life.effective_state(), State::kStopped);
  EXPECT_EQ(life.Hear(kOther, false), Heard::kAgain);
  EXPECT_EQ(life.exit()->status, kEnd.status);
}

TEST(ProcessLife, EndsAreHeldBackUntilTheCreateIsPublished) {
  ProcessLife life;
  life.BeginCreate();
  EXPECT_EQ(life.Hear(kEnd, false), Heard::kHeld);
  life.Created();
  EXPECT_EQ(life.Expect(), Heard::kHeld) << "it is not published yet";
  EXPECT_FALSE(life.is_starting());
  EXPECT_TRUE(life.Release());
  EXPECT_EQ(life.Expect(), Heard::kNew);
}

TEST(ProcessLife, IsAcknowledgedOnlyOnceItIsRecorded) {
  const Lines lines;
  ProcessLife life;
  life.Created();
  life.Started();
  EXPECT_FALSE(life.Acknowledge()) << "it has no end";
  EXPECT_FALSE(life.Recorded(true)) << "it has no end";
  life.Hear(kEnd, true);
  EXPECT_FALSE(life.Acknowledge()) << "its end is on no record";
  EXPECT_FALSE(life.exited().is_set());
  EXPECT_FALSE(life.on_record());
  EXPECT_TRUE(life.Stopped());
  EXPECT_TRUE(life.Recorded(true));
  EXPECT_TRUE(life.on_record());
  EXPECT_TRUE(life.Acknowledge());
  EXPECT_EQ(life.exited().value().status, kEnd.status);
  EXPECT_FALSE(life.Recorded(false)) << "too late";
  EXPECT_TRUE(life.on_record());
  EXPECT_TRUE(life.Published());
  EXPECT_FALSE(life.Published()) << "once";
}

TEST(ProcessLife, WhatCouldNotBeWrittenIsOnNoRecord) {
  ProcessLife life;
  life.Created();
  life.Started();
  life.Hear(kEnd, false);
  EXPECT_FALSE(life.unrecorded()) << "nobody has tried";
  life.Stopped();
  life.Recorded(false);
  EXPECT_TRUE(life.unrecorded());
  EXPECT_TRUE(life.Acknowledge()) << "a full disk keeps nobody waiting";
  EXPECT_FALSE(life.on_record()) << "so the keeper has to keep it";
}

TEST(ProcessLife, AnEndFromTheRecordIsOnRecord) {
  ProcessLife life;
  life.Restore(State::kStopped, kEnd, true);
  EXPECT_TRUE(life.on_record());
  EXPECT_TRUE(life.unpublished());
  EXPECT_FALSE(life.exited().is_set());
  EXPECT_EQ(life.Hear(kOther, false), Heard::kAgain);
  EXPECT_TRUE(life.Acknowledge());
  EXPECT_EQ(life.exited().value().status, kEnd.status);
}

TEST(ProcessLife, AStartThatIsUndoneTakesItsEndAlong) {
  ProcessLife life;
  life.Created();
  life.BeginStart();
  life.Starting();
  life.Hear(kEnd, false);
  EXPECT_TRUE(life.StartUndone());
  EXPECT_FALSE(life.has_end());
  EXPECT_EQ(life.Hear(kOther, false), Heard::kNew) << "nothing is held back any more";
}

TEST(ProcessLife, OneThatNeverRanMayBeStartedAgain) {
  ProcessLife life;
  life.Created();
  life.BeginStart();
  EXPECT_TRUE(life.StartFailed(false));
  EXPECT_TRUE(life.never_ran());
  EXPECT_FALSE(life.Release());
  EXPECT_TRUE(life.BeginStart());
  EXPECT_TRUE(life.Started());
  EXPECT_FALSE(life.never_ran());
}

TEST(ProcessLife, AnExecWhoseStartFailedIsCreatedAndHasEnded) {
  const Lines lines;
  ProcessLife life;
  life.Created();
  life.BeginStart();
  life.Starting();
  life.Hear(kOther, false);
  EXPECT_TRUE(life.StartFailed(true, kEnd));
  EXPECT_EQ(life.state(), State::kCreated);
  EXPECT_EQ(life.effective_state(), State::kStopped);
  EXPECT_EQ(life.exit()->status, kEnd.status);
  EXPECT_FALSE(life.never_ran());
  EXPECT_FALSE(life.BeginStart());
  life.Recorded(true);
  EXPECT_TRUE(life.Acknowledge());
}

TEST(ProcessLife, WhoeverWaitsIsWokenByTheEndByItsGoingOrByHimself) {
  for (const auto& wake :
       {std::function([](ProcessLife& life, async::OneShot<void>&) {
          life.Hear(kEnd, false);
          life.Recorded(true);
          life.Acknowledge();
        }),
        std::function([](ProcessLife& life, async::OneShot<void>&) { life.SetGone(); }),
        std::function([](ProcessLife&, async::OneShot<void>& woken) { woken.Set(); })}) {
    async::Loop loop;
    ProcessLife life;
    life.Created();
    life.Started();
    async::OneShot<void> woken;
    bool back = false;
    loop.Post([&] {
      async::Start(life.AwaitEnd(woken), [&] { back = true; });
      EXPECT_FALSE(back);
      wake(life, woken);
    });
    EXPECT_TRUE(test::RunUntil(loop, [&] { return back; }));
  }
}

}  // namespace
}  // namespace gantry::task
