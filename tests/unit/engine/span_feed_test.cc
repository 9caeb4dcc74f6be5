// SPDX-License-Identifier: Apache-2.0
#include "core/engine/span_feed.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/link/span_api.h"
#include "core/trace/recorder.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::engine {
namespace {

using namespace std::chrono_literals;

constexpr trace::Subject kExec{"k8s.io", "c1", "e1"};
const trace::SpanContext kCaller{{1, 2, 3}, {4, 5}, true, {}};

class SpanFeedTest : public testing::Test {
 protected:
  SpanFeedTest() { recorder_.Export(&spans_); }

  /// Begins to ask.
  std::optional<Result<v1::TakeSpansResponse>>& Ask(const v1::TakeSpansRequest& request,
                                                    const rpc::CallContext& call) {
    answer_.reset();
    async::Start(test::Store(feed_.Take(call, request), &answer_));
    loop_.Advance(0s);
    return answer_;
  }

  v1::TakeSpansResponse Taken(const v1::TakeSpansRequest& request = {}) {
    const auto& answer = Ask(request, call_);
    EXPECT_TRUE(answer && *answer);
    return answer && *answer ? **answer : v1::TakeSpansResponse();
  }

  static v1::TakeSpansRequest Waiting(uint32_t wait_ms) {
    v1::TakeSpansRequest request;
    request.set_wait_ms(wait_ms);
    return request;
  }

  test::SimulatedLoop loop_;
  trace::Spans spans_{{.sample = 1, .most = 1000}};
  trace::Recorder recorder_;
  rpc::CallContext call_;
  std::optional<Result<v1::TakeSpansResponse>> answer_;
  SpanFeed feed_{loop_, spans_};
};

TEST_F(SpanFeedTest, GivesAllThatIsKnownOfASpan) {
  trace::SpanContext caller = kCaller;
  caller.state = "a=b";
  recorder_.Begin(trace::Kind::kCall, kExec, "Start", true, &caller)
      .Waited(7ns)
      .Ended(Code::kNotFound, "no such file");

  const v1::TakeSpansResponse taken = Taken();

  ASSERT_EQ(taken.spans_size(), 1);
  const v1::Span& span = taken.spans(0);
  EXPECT_EQ(span.trace_id(), std::string(caller.trace.begin(), caller.trace.end()));
  EXPECT_EQ(span.parent_span_id(), std::string(caller.span.begin(), caller.span.end()));
  EXPECT_EQ(span.span_id().size(), 8U);
  EXPECT_EQ(span.trace_state(), "a=b");
  EXPECT_EQ(span.kind(), "call");
  EXPECT_EQ(span.what(), "Start");
  EXPECT_EQ(span.namespace_(), "k8s.io");
  EXPECT_EQ(span.id(), "c1");
  EXPECT_EQ(span.exec_id(), "e1");
  EXPECT_GT(span.begun_ns(), 0);
  EXPECT_GE(span.took_ns(), 0);
  EXPECT_EQ(span.waited_ns(), 7);
  EXPECT_EQ(span.code(), static_cast<int>(Code::kNotFound));
  EXPECT_EQ(span.detail(), "no such file");
  EXPECT_TRUE(span.again());
}

TEST_F(SpanFeedTest, OfOneThatBeginsATraceHasNoParent) {
  recorder_.Note(trace::Kind::kEngine, {}, "told to end");
  EXPECT_EQ(Taken().spans(0).parent_span_id(), "");
}

TEST_F(SpanFeedTest, MakesTextOfWhatIsNone) {
  recorder_.Note(trace::Kind::kBackend, {"k8s.io", "c1", ""}, "create", Code::kInternal,
                 "a \xff byte");
  const v1::TakeSpansResponse taken = Taken();
  EXPECT_EQ(taken.spans(0).detail(), "a ? byte");
  v1::TakeSpansResponse read;
  EXPECT_TRUE(read.ParseFromString(taken.SerializeAsString()));
}

TEST_F(SpanFeedTest, AnswersAtOnceWhereNobodyWaits) { EXPECT_EQ(Taken().spans_size(), 0); }

TEST_F(SpanFeedTest, WaitsForTheFirstOne) {
  const auto& answer = Ask(Waiting(10'000), call_);
  EXPECT_FALSE(answer);
  EXPECT_TRUE(call_.abandonment->parked()) << "another engine can wait as well";
  recorder_.Note(trace::Kind::kCall, kExec, "Kill");
  loop_.Advance(0s);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->spans_size(), 1);
}

TEST_F(SpanFeedTest, WaitsNoLongerThanItIsAskedTo) {
  const auto& answer = Ask(Waiting(10'000), call_);
  loop_.Advance(9'999ms);
  EXPECT_FALSE(answer);
  loop_.Advance(1ms);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->spans_size(), 0);
}

TEST_F(SpanFeedTest, WaitsAMinuteAtMost) {
  const auto& answer = Ask(Waiting(~uint32_t{0}), call_);
  loop_.Advance(1min);
  EXPECT_TRUE(answer);
}

TEST_F(SpanFeedTest, GivesNothingToWhoHasGone) {
  rpc::CallContext gone;
  const auto& answer = Ask(Waiting(10'000), gone);
  gone.abandonment->Happen();
  recorder_.Note(trace::Kind::kCall, kExec, "Kill");
  loop_.Advance(0s);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->spans_size(), 0);
  EXPECT_EQ(spans_.waiting(), 1U);
}

TEST_F(SpanFeedTest, GivesNoMoreThanIsAskedFor) {
  for (int i = 0; i < 600; ++i) {
    recorder_.Note(trace::Kind::kCall, kExec, "Kill");
  }
  v1::TakeSpansRequest request;
  request.set_most(3);
  EXPECT_EQ(Taken(request).spans_size(), 3);
  request.set_most(100'000);
  EXPECT_EQ(Taken(request).spans_size(), 512) << "of one answer";
  EXPECT_EQ(Taken().spans_size(), 85);
}

TEST_F(SpanFeedTest, CountsWhatBecameOfThem) {
  for (int i = 0; i < 1002; ++i) {
    recorder_.Note(trace::Kind::kCall, kExec, "Kill");
  }
  v1::TakeSpansRequest request;
  request.set_exported(3);
  request.set_refused(1);
  EXPECT_EQ(Taken(request).dropped(), 2U);
  EXPECT_EQ(Taken(request).dropped(), 2U);
  EXPECT_EQ(spans_.counters().exported, 6U);
  EXPECT_EQ(spans_.counters().refused, 2U);
}

TEST_F(SpanFeedTest, IsAMethodOfItsOwnService) {
  rpc::MethodTable table;
  ASSERT_TRUE(feed_.Register(table));
  EXPECT_TRUE(table.Find(span_api::kService, span_api::kTake));
}

}  // namespace
}  // namespace gantry::engine
