// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/dispatcher.h"

#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/log.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::rpc {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;
using test::RunAllReady;
using test::RunUntil;

constexpr uint64_t kConnection = 7;

/// A table with a method for each thing that can go one way or the other, and
/// a dispatcher whose answers are collected.
class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() {
    log::SetSinkForTest([](std::string_view) {});
    Add("Echo", [](rpc::Call call) -> async::Task<Result<std::string>> { co_return call.payload; });
    Add("Who", [](rpc::Call call) -> async::Task<Result<std::string>> {
      co_return call.ns + "|" + call.address + (call.replay ? "|replay" : "");
    });
    Add("Throw", [](rpc::Call) -> async::Task<Result<std::string>> {
      throw std::runtime_error("bad luck");
      co_return "";
    });
    Add("Big", [](rpc::Call) -> async::Task<Result<std::string>> {
      co_return std::string(kMaxFrameBytes, 'x');
    });
    Add("Wait", [this](rpc::Call call) -> async::Task<Result<std::string>> {
      const async::OneShot<std::string> end = end_;
      call.abandonment->Notify([this] { ++abandoned_; });
      co_return co_await end.Wait();
    });
    Add("WaitUntilAbandoned", [](rpc::Call call) -> async::Task<Result<std::string>> {
      async::OneShot<std::string> end;
      call.abandonment->Notify([end]() mutable { end.Set("abandoned"); });
      co_return co_await end.Wait();
    });
  }

  ~DispatcherTest() override {
    end_.Set("end");
    RunAllReady(loop_);
    log::SetSinkForTest({});
  }

  void Add(const std::string& method, Handler handler) {
    ASSERT_TRUE(table_.Add("t.Test", method, std::move(handler)));
  }

  void Make(DispatcherLimits limits = {}) {
    dispatcher_.emplace(
        loop_, table_,
        [this](uint64_t connection, uint32_t stream, std::string response) {
          EXPECT_EQ(connection, kConnection);
          EXPECT_FALSE(answers_.contains(stream)) << "answered twice";
          answers_[stream] = DecodeResponse(response);
        },
        limits);
  }

  static IncomingRequest Incoming(uint32_t stream, const std::string& method, std::string payload,
                                  std::chrono::nanoseconds timeout = {}, Metadata metadata = {}) {
    const Request request{"t.Test", method, std::move(payload), timeout, std::move(metadata)};
    return {kConnection, stream, EncodeRequest(request), "", "", false, {}};
  }

  Code CodeOf(uint32_t stream) {
    return answers_.contains(stream) && !answers_[stream] ? answers_[stream].error().code
                                                          : Code::kOk;
  }

  async::Loop loop_;
  MethodTable table_;
  async::OneShot<std::string> end_;
  int abandoned_ = 0;
  std::map<uint32_t, Result<std::string>> answers_;
  std::optional<Dispatcher> dispatcher_;
};

TEST_F(DispatcherTest, AnswersInAnyOrder) {
  Make();
  dispatcher_->Dispatch(Incoming(1, "Wait", ""));
  dispatcher_->Dispatch(Incoming(3, "Echo", "hello"));
  RunAllReady(loop_);
  ASSERT_TRUE(answers_.contains(3));
  EXPECT_EQ(*answers_[3], "hello");
  EXPECT_FALSE(answers_.contains(1));
  EXPECT_EQ(dispatcher_->counters().running, 1U);
  end_.Set("over");
  ASSERT_TRUE(RunUntil(loop_, [&] { return answers_.contains(1); }));
  EXPECT_EQ(*answers_[1], "over");
  EXPECT_EQ(dispatcher_->counters().running, 0U);
}

TEST_F(DispatcherTest, AnswersWhatItCannotRun) {
  Make();
  dispatcher_->Dispatch(Incoming(1, "Undo", ""));
  IncomingRequest malformed = Incoming(3, "Echo", "");
  malformed.bytes = "\x0a\x7f";
  dispatcher_->Dispatch(std::move(malformed));
  dispatcher_->Dispatch(Incoming(5, "Throw", ""));
  dispatcher_->Dispatch(Incoming(7, "Big", ""));
  dispatcher_->Dispatch(Incoming(9, "Echo", "", -1ms));
  RunAllReady(loop_);
  EXPECT_EQ(CodeOf(1), Code::kUnimplemented);
  EXPECT_EQ(answers_[1].error().message, "method Undo");
  EXPECT_EQ(CodeOf(3), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(5), Code::kInternal);
  EXPECT_THAT(answers_[5].error().message, testing::HasSubstr("bad luck"));
  EXPECT_EQ(CodeOf(7), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf(9), Code::kDeadlineExceeded);
}

TEST_F(DispatcherTest, TheSocketKnowsTheNamespace) {
  Make();
  IncomingRequest request = Incoming(1, "Who", "");
  request.ns = "default";
  request.address = "/run/s";
  request.replay = true;
  dispatcher_->Dispatch(std::move(request));
  EXPECT_EQ(*answers_[1], "default|/run/s|replay");

  const Metadata k8s = {{std::string(kNamespaceKey), "k8s.io"}};
  dispatcher_->Dispatch(Incoming(3, "Who", "", {}, k8s));
  EXPECT_EQ(*answers_[3], "k8s.io|");

  request = Incoming(5, "Who", "", {}, k8s);
  request.ns = "default";
  dispatcher_->Dispatch(std::move(request));
  EXPECT_EQ(CodeOf(5), Code::kInvalidArgument);
}

TEST_F(DispatcherTest, TimeIsUpForTheCallerNotForTheHandler) {
  Make();
  dispatcher_->Dispatch(Incoming(1, "Wait", "", 1ms));
  ASSERT_TRUE(RunUntil(loop_, [&] { return answers_.contains(1); }));
  EXPECT_EQ(CodeOf(1), Code::kDeadlineExceeded);
  EXPECT_EQ(abandoned_, 1);
  EXPECT_EQ(dispatcher_->counters().running, 1U);
  end_.Set("late");
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 0; }));
  EXPECT_EQ(dispatcher_->counters().dropped, 1U);
  EXPECT_EQ(dispatcher_->counters().timeouts, 1U);
}

TEST_F(DispatcherTest, AReplayHasOnlyWhatIsLeftOfItsTime) {
  Make();
  IncomingRequest late = Incoming(1, "Echo", "", 1h);
  late.age = 2h;
  dispatcher_->Dispatch(std::move(late));
  EXPECT_EQ(CodeOf(1), Code::kDeadlineExceeded);
  IncomingRequest unlimited = Incoming(3, "Echo", "x");
  unlimited.age = 2h;
  dispatcher_->Dispatch(std::move(unlimited));
  EXPECT_EQ(*answers_[3], "x");
}

TEST_F(DispatcherTest, AClosedConnectionDropsItsAnswersAndTellsTheHandlers) {
  Make();
  dispatcher_->Dispatch(Incoming(1, "Wait", ""));
  dispatcher_->Dispatch(Incoming(3, "WaitUntilAbandoned", ""));
  EXPECT_EQ(dispatcher_->counters().running, 2U);
  dispatcher_->ConnectionClosed(kConnection);
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 1; }));
  EXPECT_EQ(abandoned_, 1);
  end_.Set("late");
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 0; }));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(dispatcher_->counters().dropped, 2U);
}

TEST_F(DispatcherTest, ParkedCallsAreBounded) {
  Make({.per_connection = 2, .total = 100});
  dispatcher_->Dispatch(Incoming(1, "Wait", ""));
  dispatcher_->Dispatch(Incoming(3, "Wait", "", 1ms));
  ASSERT_TRUE(RunUntil(loop_, [&] { return answers_.contains(3); }));
  // Its caller has given up, but it is still there.
  dispatcher_->Dispatch(Incoming(5, "Echo", ""));
  EXPECT_EQ(CodeOf(5), Code::kResourceExhausted);
  EXPECT_EQ(dispatcher_->counters().refused, 1U);
  end_.Set("end");
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 0; }));
  dispatcher_->Dispatch(Incoming(7, "Echo", "again"));
  EXPECT_EQ(*answers_[7], "again");
}

TEST_F(DispatcherTest, IsBusyWithCallsThatAreNotParked) {
  Add("Park", [](rpc::Call call) -> async::Task<Result<std::string>> {
    async::OneShot<std::string> end;
    call.abandonment->Park([end]() mutable { end.Set("abandoned"); });
    co_return co_await end.Wait();
  });
  Make();
  EXPECT_FALSE(dispatcher_->IsBusy());
  dispatcher_->Dispatch(Incoming(1, "Park", ""));
  EXPECT_FALSE(dispatcher_->IsBusy());
  dispatcher_->Dispatch(Incoming(3, "Wait", ""));
  EXPECT_TRUE(dispatcher_->IsBusy());
  end_.Set("end");
  ASSERT_TRUE(RunUntil(loop_, [&] { return answers_.contains(3); }));
  EXPECT_FALSE(dispatcher_->IsBusy());
  EXPECT_FALSE(answers_.contains(1));
}

TEST_F(DispatcherTest, CallsOfOneAccountAreBounded) {
  Make({.per_account = 2});
  const auto account = std::make_shared<async::Account>("pod");
  const auto of = [&](uint32_t stream, const std::string& method, const async::AccountPtr& whose) {
    IncomingRequest request = Incoming(stream, method, "x");
    request.account = whose;
    dispatcher_->Dispatch(std::move(request));
  };
  of(1, "Wait", account);
  of(3, "Wait", account);
  EXPECT_EQ(account->calls, 2U);
  of(5, "Echo", account);
  EXPECT_EQ(CodeOf(5), Code::kResourceExhausted);
  EXPECT_THAT(answers_[5].error().message,
              testing::HasSubstr("2 calls of sandbox 'pod' are unanswered "
                                 "(limits.max_calls_per_sandbox)"));
  of(7, "Echo", std::make_shared<async::Account>("other"));
  of(9, "Echo", nullptr);
  EXPECT_EQ(*answers_[7], "x");
  EXPECT_EQ(*answers_[9], "x");
  // Accepted before a restart of the engine, perhaps by another limit.
  IncomingRequest replayed = Incoming(11, "Echo", "x");
  replayed.account = account;
  replayed.replay = true;
  dispatcher_->Dispatch(std::move(replayed));
  EXPECT_EQ(*answers_[11], "x");
  end_.Set("end");
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 0; }));
  EXPECT_EQ(account->calls, 0U);
  EXPECT_EQ(account->bytes, 0U);
  EXPECT_GT(account->cpu_ns, 0U);
}

TEST_F(DispatcherTest, BytesOfOneAccountAreBounded) {
  Make({.bytes_per_account = 1000});
  const auto account = std::make_shared<async::Account>("pod");
  for (const uint32_t stream : {1U, 3U}) {
    IncomingRequest request = Incoming(stream, "Wait", std::string(600, 'x'));
    request.account = account;
    dispatcher_->Dispatch(std::move(request));
  }
  EXPECT_EQ(account->bytes, 600U);
  EXPECT_EQ(CodeOf(3), Code::kResourceExhausted);
  EXPECT_THAT(answers_[3].error().message,
              testing::HasSubstr("600 are held for sandbox 'pod' (limits.max_bytes_per_sandbox)"));
  IncomingRequest request = Incoming(5, "Echo", "small");
  request.account = account;
  dispatcher_->Dispatch(std::move(request));
  EXPECT_EQ(*answers_[5], "small");
}

TEST_F(DispatcherTest, CountsItsAnswersByMethodAndCode) {
  Make({.per_connection = 2});
  dispatcher_->Dispatch(Incoming(1, "Echo", "a"));
  dispatcher_->Dispatch(Incoming(3, "Echo", "b"));
  dispatcher_->Dispatch(Incoming(5, "Throw", ""));
  dispatcher_->Dispatch(Incoming(7, "Big", ""));
  // None of these two names is a label.
  dispatcher_->Dispatch(Incoming(9, "Undo", ""));
  dispatcher_->Dispatch(Incoming(11, std::string(60, 'x'), ""));
  dispatcher_->Dispatch(Incoming(13, "Wait", ""));
  dispatcher_->Dispatch(Incoming(15, "Wait", ""));
  dispatcher_->Dispatch(Incoming(17, "Wait", ""));
  end_.Set("end");
  ASSERT_TRUE(RunUntil(loop_, [&] { return dispatcher_->counters().running == 0; }));
  std::map<std::string, uint64_t> counts;
  for (const AnswerCount& one : dispatcher_->Answers()) {
    counts[one.service + "/" + one.method + " " + std::string(CodeName(one.code))] = one.count;
  }
  const auto code = [](Code of) { return std::string(CodeName(of)); };
  EXPECT_THAT(counts, testing::UnorderedElementsAre(
                          testing::Pair("t.Test/Echo " + code(Code::kOk), 2),
                          testing::Pair("t.Test/Throw " + code(Code::kInternal), 1),
                          testing::Pair("t.Test/Big " + code(Code::kResourceExhausted), 1),
                          testing::Pair("/ " + code(Code::kUnimplemented), 2),
                          testing::Pair("t.Test/Wait " + code(Code::kOk), 2),
                          testing::Pair("t.Test/Wait " + code(Code::kResourceExhausted), 1)));
}

TEST_F(DispatcherTest, MayGoWhileHandlersRun) {
  Make();
  dispatcher_->Dispatch(Incoming(1, "Wait", "", 1h));
  dispatcher_.reset();
  EXPECT_EQ(abandoned_, 1);
  end_.Set("late");
  RunAllReady(loop_);
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace gantry::rpc
