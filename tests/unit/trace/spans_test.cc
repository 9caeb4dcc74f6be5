// SPDX-License-Identifier: Apache-2.0
#include "core/trace/spans.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/os/fs.h"
#include "core/trace/recorder.h"
#include "core/trace/ring.h"

namespace gantry::trace {
namespace {

constexpr Subject kContainer{"k8s.io", "c1", ""};
constexpr Subject kExec{"k8s.io", "c1", "e1"};
const SpanContext kCaller{{1}, {2}, true, {}};
const SpanContext kUnsampled{{3}, {4}, false, {}};

class SpansTest : public testing::Test {
 protected:
  SpansTest() { recorder_.Export(&spans_); }

  /// All that wait, by what they are.
  std::map<std::string, Span> Taken() {
    std::map<std::string, Span> taken;
    for (Span& span : spans_.Take(1000)) {
      taken.emplace(span.what, span);
    }
    return taken;
  }

  OpenStep Call(std::string_view what, const SpanContext* caller = nullptr,
                const Subject& subject = kContainer) {
    return recorder_.Begin(Kind::kCall, subject, what, false, caller);
  }

  OpenStep Backend(std::string_view what, const Subject& subject = kContainer) {
    return recorder_.Begin(Kind::kBackend, subject, what);
  }

  Spans spans_{{.sample = 1}};
  Recorder recorder_;
};

TEST_F(SpansTest, AreStepsThatHaveEnded) {
  const OpenStep step = recorder_.Begin(Kind::kCall, kExec, "Exec", true);
  EXPECT_EQ(spans_.waiting(), 0U);
  step.Ended(Code::kNotFound, "no such file");

  const std::vector<Span> taken = spans_.Take(10);

  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].kind, Kind::kCall);
  EXPECT_EQ(taken[0].ns, "k8s.io");
  EXPECT_EQ(taken[0].id, "c1");
  EXPECT_EQ(taken[0].exec, "e1");
  EXPECT_EQ(taken[0].what, "Exec");
  EXPECT_TRUE(taken[0].again);
  EXPECT_GT(taken[0].begun_ns, 0);
  EXPECT_EQ(taken[0].end.code, Code::kNotFound);
  EXPECT_EQ(taken[0].end.detail, "no such file");
  EXPECT_NE(taken[0].context.trace, TraceId{});
  EXPECT_NE(taken[0].context.span, SpanId{});
  EXPECT_EQ(taken[0].parent, SpanId{});
  EXPECT_EQ(spans_.waiting(), 0U);
}

TEST_F(SpansTest, OfACallAreItsCallers) {
  SpanContext caller = kCaller;
  caller.state = "a=b";
  Call("Create", &caller).Ended(Code::kOk);
  const Span span = Taken().at("Create");
  EXPECT_EQ(span.context.trace, caller.trace);
  EXPECT_EQ(span.parent, caller.span);
  EXPECT_NE(span.context.span, caller.span);
  EXPECT_EQ(span.context.state, "a=b");
}

TEST_F(SpansTest, OfABackendAndOfEventsAreThoseOfTheCallUnderWay) {
  const OpenStep call = Call("Start", &kCaller);
  Backend("start").Ended(Code::kOk);
  const OpenStep event = recorder_.Begin(Kind::kEvent, kContainer, "/tasks/start");
  call.Ended(Code::kOk);
  event.Ended(Code::kOk);
  auto taken = Taken();
  EXPECT_EQ(taken.at("start").parent, taken.at("Start").context.span);
  EXPECT_EQ(taken.at("start").context.trace, kCaller.trace);
  EXPECT_EQ(taken.at("/tasks/start").parent, taken.at("Start").context.span);
}

TEST_F(SpansTest, OfAnExecAreThoseOfItsOwnCall) {
  const OpenStep exec = Call("Start", &kCaller, kExec);
  const OpenStep kill = Call("Kill");
  Backend("start", kExec).Ended(Code::kOk);
  Backend("signal").Ended(Code::kOk);
  exec.Ended(Code::kOk);
  kill.Ended(Code::kOk);
  auto taken = Taken();
  EXPECT_EQ(taken.at("start").parent, taken.at("Start").context.span);
  EXPECT_EQ(taken.at("signal").parent, taken.at("Kill").context.span);
}

TEST_F(SpansTest, OfTheContainerAreThoseOfAnExecsCallWhereThereIsNoOther) {
  const OpenStep exec = Call("Exec", &kCaller, kExec);
  Backend("exec in").Ended(Code::kOk);
  exec.Ended(Code::kOk);
  auto taken = Taken();
  EXPECT_EQ(taken.at("exec in").parent, taken.at("Exec").context.span);
}

TEST_F(SpansTest, AreNoChildrenOfWhatOnlyWaits) {
  const OpenStep wait = Call("Wait", &kCaller);
  const OpenStep pod = Call("WaitSandbox", &kCaller);
  Backend("kill all of").Ended(Code::kOk);
  EXPECT_EQ(Taken().at("kill all of").parent, SpanId{});
}

TEST_F(SpansTest, OfWhatFollowsACallBeginATrace) {
  Call("Start", &kCaller).Ended(Code::kOk);
  const OpenStep exit = recorder_.Begin(Kind::kExit, kContainer, "exit");
  recorder_.Begin(Kind::kEvent, kContainer, "/tasks/exit").Ended(Code::kOk);
  exit.Ended(Code::kOk);
  auto taken = Taken();
  EXPECT_EQ(taken.at("exit").parent, SpanId{});
  EXPECT_NE(taken.at("exit").context.trace, kCaller.trace);
  EXPECT_EQ(taken.at("/tasks/exit").parent, taken.at("exit").context.span);
}

TEST_F(SpansTest, OfOtherContainersAreNotMixed) {
  const OpenStep call = Call("Start", &kCaller);
  Backend("other id", {"k8s.io", "c2", ""}).Ended(Code::kOk);
  Backend("other namespace", {"default", "c1", ""}).Ended(Code::kOk);
  Backend("nobody", {}).Ended(Code::kOk);
  for (const auto& [what, span] : Taken()) {
    EXPECT_EQ(span.parent, SpanId{}) << what;
  }
}

TEST_F(SpansTest, OfANoteAreThoseOfWhatIsUnderWay) {
  const OpenStep call = Call("Create", &kCaller);
  recorder_.Note(Kind::kCall, kContainer, "Create given up", Code::kDeadlineExceeded, "it hangs",
                 std::chrono::nanoseconds(5));
  call.Ended(Code::kOk);
  auto taken = Taken();
  const Span& note = taken.at("Create given up");
  EXPECT_EQ(note.parent, taken.at("Create").context.span);
  EXPECT_EQ(note.end.took_ns, 5);
  EXPECT_EQ(note.end.code, Code::kDeadlineExceeded);
}

TEST_F(SpansTest, AreNotThereWhereTheCallerDoesNotWantThem) {
  const OpenStep call = Call("Create", &kUnsampled);
  Backend("create").Ended(Code::kOk);
  call.Ended(Code::kOk);
  EXPECT_EQ(spans_.waiting(), 0U);
}

TEST_F(SpansTest, EndOnce) {
  const OpenStep step = Call("Create");
  const OpenStep copy = step;
  step.Ended(Code::kOk);
  copy.Ended(Code::kInternal);
  EXPECT_EQ(spans_.Take(10).size(), 1U);
}

TEST_F(SpansTest, OfWhatNeverEndsAreNoParentsAnyMore) {
  {
    const OpenStep lost = Call("Create", &kCaller);
  }
  Backend("create").Ended(Code::kOk);
  EXPECT_EQ(Taken().at("create").parent, SpanId{});
}

TEST_F(SpansTest, OfQuestionsAreThereForWhoAsksWithATrace) {
  recorder_.BeginUnrecorded(Kind::kCall, kContainer, "State", kUnsampled).Ended(Code::kOk);
  EXPECT_EQ(spans_.waiting(), 0U);
  const OpenStep state = recorder_.BeginUnrecorded(Kind::kCall, kContainer, "State", kCaller);
  Backend("signal").Ended(Code::kOk);
  state.Ended(Code::kOk);
  auto taken = Taken();
  EXPECT_EQ(taken.at("State").parent, kCaller.span);
  EXPECT_EQ(taken.at("signal").parent, SpanId{}) << "a question does nothing";
}

TEST_F(SpansTest, AreTakenTheOldestFirst) {
  for (int i = 0; i < 5; ++i) {
    Call(Format("{}", i)).Ended(Code::kOk);
  }
  EXPECT_EQ(spans_.Take(2)[1].what, "1");
  EXPECT_EQ(spans_.Take(2)[0].what, "2");
  EXPECT_EQ(spans_.waiting(), 1U);
}

TEST_F(SpansTest, SayThatThereAreSome) {
  int told = 0;
  spans_.OnAdded([&told] { ++told; });
  Call("Create").Ended(Code::kOk);
  Call("Create", &kUnsampled).Ended(Code::kOk);
  EXPECT_EQ(told, 1);
}

TEST(Spans, HaveRoomForSoManyAndCountTheOthers) {
  Spans spans({.sample = 1, .most = 3});
  Recorder recorder;
  recorder.Export(&spans);
  for (int i = 0; i < 5; ++i) {
    recorder.Note(Kind::kCall, kContainer, Format("{}", i));
  }
  EXPECT_EQ(spans.counters().dropped, 2U);
  const std::vector<Span> taken = spans.Take(10);
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].what, "2") << "the oldest have made room";
}

TEST(Spans, HaveTextsOfALimitedLength) {
  Spans spans({.sample = 1});
  Recorder recorder;
  recorder.Export(&spans);
  const std::string longest(10'000, 'x');
  recorder.Note(Kind::kCall, {longest, longest, longest}, longest, Code::kOk, longest);
  const std::vector<Span> taken = spans.Take(1);
  for (const std::string& text :
       {taken[0].ns, taken[0].id, taken[0].exec, taken[0].what, taken[0].end.detail}) {
    EXPECT_EQ(text.size(), kMaxSpanText);
  }
}

TEST(Spans, OfTracesThatBeginHereAreKeptByTheRatio) {
  // The trace's lower half decides: the second number of each four.
  const auto kept = [](double ratio, uint64_t lower) {
    int calls = 0;
    Spans spans({.sample = ratio, .random = [&calls, lower] {
                   // As it lies in the id, big endian.
                   return calls++ == 1 ? __builtin_bswap64(lower) : uint64_t{7};
                 }});
    Recorder recorder;
    recorder.Export(&spans);
    recorder.Note(Kind::kCall, kContainer, "Create");
    return spans.waiting() == 1;
  };
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  EXPECT_TRUE(kept(0.5, kHalf - 1));
  EXPECT_FALSE(kept(0.5, kHalf));
  EXPECT_TRUE(kept(1, ~uint64_t{0}));
  EXPECT_FALSE(kept(0, 1));
}

TEST(Spans, HaveIdsOfTheirOwn) {
  Spans spans({.sample = 1});
  Recorder recorder;
  recorder.Export(&spans);
  recorder.Note(Kind::kEngine, {}, "a");
  recorder.Note(Kind::kEngine, {}, "b");
  const std::vector<Span> taken = spans.Take(2);
  EXPECT_NE(taken[0].context.trace, taken[1].context.trace);
  EXPECT_NE(taken[0].context.span, taken[1].context.span);
}

TEST(Spans, AreMadeBesideTheRing) {
  const auto dir = os::TempDir::Create();
  Spans spans({.sample = 1});
  Recorder recorder;
  ASSERT_TRUE(recorder.Open(dir->path()));
  recorder.Export(&spans);
  recorder.Begin(Kind::kCall, kContainer, "Create").Ended(Code::kOk);
  recorder.BeginUnrecorded(Kind::kCall, kContainer, "State", kCaller).Ended(Code::kOk);
  recorder.Note(Kind::kKeeper, kContainer, "announced");
  EXPECT_EQ(spans.waiting(), 3U);
  const auto steps = ReadRing(dir->path());
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 2U);
  EXPECT_TRUE((*steps)[0].end);
  EXPECT_EQ((*steps)[1].what, "announced");
}

TEST(Spans, AreNoneWhereTheyAreNotAskedFor) {
  Recorder recorder;
  EXPECT_FALSE(recorder.exports());
  EXPECT_FALSE(recorder.BeginUnrecorded(Kind::kCall, kContainer, "State", kCaller));
}

}  // namespace
}  // namespace gantry::trace
