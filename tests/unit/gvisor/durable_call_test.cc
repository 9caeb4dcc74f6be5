// SPDX-License-Identifier: Apache-2.0
//
// What a durable call allows in each of its states, and that nothing of it stays stored once it
// is over, whichever way that comes.
#include "plugins/gvisor/sentry/durable_call.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using urpc::Cause;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

/// What can be done with one.
enum class Step { kStore, kSend, kPeek, kAsk };

class DurableCallTest : public testing::Test {
 protected:
  using State = DurableCall::State;

  ~DurableCallTest() override { answers_.release(100); }

  DurableCall Opened() { return *DurableCall::Open(context_, socket_, "call", Soon()); }

  DurableCall Stored() {
    DurableCall call = Opened();
    EXPECT_TRUE(DurableCall::Store({&call}));
    return call;
  }

  DurableCall Sent(std::string_view method) {
    DurableCall call = Stored();
    EXPECT_TRUE(call.Send({.method = method}, Soon()));
    return call;
  }

  DurableCall TakenUp() { return *DurableCall::TakeUp(context_, "call"); }

  /// One in that state, in which the sentry has what it is to have.
  DurableCall In(State state) {
    context_.stored.clear();
    switch (state) {
      case State::kOpened:
        return Opened();
      case State::kStored:
        return Stored();
      case State::kTakenUp: {
        const DurableCall sent = Sent("does");
        return TakenUp();
      }
      case State::kSent:
        return Sent("does");
      case State::kAnswered:
      case State::kSettled:
        break;
    }
    DurableCall call = Sent("does");
    EXPECT_TRUE(call.Peek("does", Soon()));
    if (state == State::kSettled) {
      call.Settle();
    }
    return call;
  }

  static urpc::Outcome<void> Do(Step step, DurableCall& call) {
    switch (step) {
      case Step::kStore:
        return DurableCall::Store({&call});
      case Step::kSend:
        return call.Send({.method = "does"}, Soon());
      case Step::kPeek: {
        const auto answer = call.Peek("does", Soon());
        return answer ? urpc::Outcome<void>() : std::unexpected(answer.error());
      }
      case Step::kAsk: {
        const auto sent = call.WasSent(Soon());
        return sent ? urpc::Outcome<void>() : std::unexpected(sent.error());
      }
    }
    return {};
  }

  FakeAnswer Answer(const std::string& method) {
    if (method == "hangs") {
      answers_.acquire();
    }
    if (method == "ends") {
      return {.bytes = {}, .fds = {}, .then_close = true};
    }
    if (method == "is refused") {
      return FakeAnswer::Refusing("no such container");
    }
    return method == "gantry.HasAnythingBeenSent" ? FakeAnswer::Refusing("unknown method")
                                                  : FakeAnswer::Of(7);
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  const std::string socket_ = folder_.path() + "/sentry.sock";
  FakeSandboxContext context_;
  std::counting_semaphore<> answers_{0};
  std::unique_ptr<FakeSentry> server_ = std::make_unique<FakeSentry>(
      socket_,
      [this](const Json& request, std::vector<UniqueFd>&) { return Answer(request["method"]); });
};

TEST_F(DurableCallTest, AllowsInEachStateWhatComesNext) {
  struct Row {
    State state;
    Step step;
    State then;
  };

  const std::vector<Row> allowed = {
      {State::kOpened, Step::kStore, State::kStored},
      {State::kStored, Step::kSend, State::kSent},
      {State::kTakenUp, Step::kSend, State::kSent},
      {State::kTakenUp, Step::kAsk, State::kAnswered},
      {State::kSent, Step::kPeek, State::kAnswered},
      {State::kAnswered, Step::kPeek, State::kAnswered},
  };
  for (const State state : {State::kOpened, State::kStored, State::kTakenUp, State::kSent,
                            State::kAnswered, State::kSettled}) {
    for (const Step step : {Step::kStore, Step::kSend, Step::kPeek, Step::kAsk}) {
      SCOPED_TRACE(testing::Message() << "state " << int(state) << ", step " << int(step));
      const auto row = std::ranges::find_if(
          allowed, [&](const Row& one) { return one.state == state && one.step == step; });
      DurableCall call = In(state);
      ASSERT_EQ(call.state(), state);
      const auto done = Do(step, call);
      ASSERT_EQ(done.has_value(), row != allowed.end());
      EXPECT_EQ(call.state(), done ? row->then : state);
      if (!done) {
        EXPECT_EQ(done.error().cause, Cause::kLocal);
        EXPECT_EQ(done.error().code, Code::kFailedPrecondition);
        EXPECT_THAT(urpc::ToError(done.error()).message, HasSubstr("call: one that is "));
      }
    }
  }
}

TEST_F(DurableCallTest, IsStoredNoMoreOnceItIsSettled) {
  for (const State state : {State::kOpened, State::kStored, State::kTakenUp, State::kSent,
                            State::kAnswered, State::kSettled}) {
    DurableCall call = In(state);
    for (int again = 0; again < 2; ++again) {
      call.Settle();
      EXPECT_EQ(call.state(), State::kSettled);
      EXPECT_THAT(context_.stored, IsEmpty()) << "state " << int(state);
    }
  }
}

TEST_F(DurableCallTest, StaysStoredWithoutItsOwnerOnlyIfItMayHaveBeenSent) {
  for (const State state : {State::kOpened, State::kStored, State::kSettled}) {
    {
      const DurableCall gone = In(state);
    }
    EXPECT_THAT(context_.stored, IsEmpty()) << "state " << int(state);
  }
  for (const State state : {State::kTakenUp, State::kSent, State::kAnswered}) {
    {
      const DurableCall gone = In(state);
    }
    EXPECT_THAT(context_.stored, ElementsAre(Pair("call", testing::_))) << "state " << int(state);
  }
}

TEST_F(DurableCallTest, HasOneOwner) {
  DurableCall first = Stored();
  {
    const DurableCall second = std::move(first);
    EXPECT_EQ(second.state(), State::kStored);
    EXPECT_THAT(context_.stored, ElementsAre(Pair("call", testing::_)));
  }
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(DurableCallTest, LeavesItsNameToWhoTakesItsConnection) {
  {
    const urpc::Connection connection = Stored().Release();
  }
  EXPECT_THAT(context_.stored, ElementsAre(Pair("call", testing::_)));
}

TEST_F(DurableCallTest, IsAnsweredByARefusalToo) {
  DurableCall call = Sent("is refused");
  EXPECT_EQ(call.Peek("is refused", Soon()).error().cause, Cause::kRefused);
  EXPECT_EQ(call.state(), State::kAnswered);
}

TEST_F(DurableCallTest, IsNotAnsweredWhereTheAnswerIsLate) {
  DurableCall call = Sent("hangs");
  EXPECT_TRUE(urpc::IsLate(call.Peek("hangs", std::chrono::steady_clock::now())));
  EXPECT_EQ(call.state(), State::kSent);
  answers_.release();
  EXPECT_TRUE(call.Peek("hangs", Soon()));
  EXPECT_EQ(call.state(), State::kAnswered);
}

TEST_F(DurableCallTest, IsNotAnsweredByTheEndOfTheSentry) {
  DurableCall call = Sent("ends");
  EXPECT_EQ(call.Peek("ends", Soon()).error().cause, Cause::kGone);
  EXPECT_EQ(call.state(), State::kSent);
}

TEST_F(DurableCallTest, OfAnEngineThatHadNotSentItIsStoredUntilItIsSettled) {
  // As the engine's end leaves it.
  {
    const urpc::Connection connection = Stored().Release();
  }
  DurableCall call = TakenUp();
  const auto sent = call.WasSent(Soon());
  ASSERT_TRUE(sent);
  EXPECT_FALSE(*sent);
  EXPECT_THAT(context_.stored, ElementsAre(Pair("call", testing::_)));
  call.Settle();
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(DurableCallTest, ThatHangsIsAsUnknownAfterTheQuestionAsBefore) {
  {
    const DurableCall sent = Sent("hangs");
  }
  DurableCall call = TakenUp();
  EXPECT_TRUE(urpc::IsLate(call.WasSent(std::chrono::steady_clock::now())));
  EXPECT_EQ(call.state(), State::kTakenUp);
  EXPECT_THAT(context_.stored, ElementsAre(Pair("call", testing::_)));
  answers_.release();
  EXPECT_EQ(call.WasSent(Soon()), true);
}

/// Of a store that is full: it takes the first, and no more.
class FullContext : public FakeSandboxContext {
 public:
  Status Store(std::string_view name, const UniqueFd& fd) override {
    return stored.empty() ? FakeSandboxContext::Store(name, fd)
                          : Status(Fail(Code::kResourceExhausted, "it is full"));
  }
};

TEST_F(DurableCallTest, OfSomeThatAreStoredTogetherNoneStaysWhereOneCannot) {
  FullContext full;
  DurableCall first = *DurableCall::Open(full, socket_, "first", Soon());
  DurableCall second = *DurableCall::Open(full, socket_, "second", Soon());
  const auto stored = DurableCall::Store({&first, &second});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().cause, Cause::kLocal);
  EXPECT_EQ(stored.error().code, Code::kResourceExhausted);
  EXPECT_EQ(first.state(), State::kSettled);
  EXPECT_EQ(second.state(), State::kSettled);
  EXPECT_THAT(full.stored, IsEmpty());
}

TEST_F(DurableCallTest, ThatCannotBeBegunLeavesNothing) {
  server_.reset();
  EXPECT_FALSE(DurableCall::Begin(context_, socket_, "call", {.method = "does"}, Soon()));
  EXPECT_THAT(context_.stored, IsEmpty());
}

}  // namespace
}  // namespace gantry::gvisor
