// SPDX-License-Identifier: Apache-2.0
//
// The exporter between an engine and a collector that do what the test says, by a clock that the
// test turns.
#include "core/door/span_exporter.h"

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/log.h"
#include "proto/opentelemetry/trace_service.pb.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::door {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using OtlpResponse = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;

/// Answers in turn, and after that well.
class FakeCollector final : public Collector {
 public:
  async::Task<Result<std::string>> Export(std::string request) override {
    opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest sent;
    EXPECT_TRUE(sent.ParseFromString(request));
    std::vector<std::string> names;
    for (const auto& span : sent.resource_spans(0).scope_spans(0).spans()) {
      names.push_back(span.name());
    }
    got.push_back(std::move(names));
    if (answers.empty()) {
      co_return std::string();
    }
    Result<std::string> answer = std::move(answers.front());
    answers.pop_front();
    co_return answer;
  }

  std::deque<Result<std::string>> answers;
  /// The names of each request's spans.
  std::vector<std::vector<std::string>> got;
};

class SpanExporterTest : public testing::Test {
 protected:
  SpanExporterTest() {
    log::SetSinkForTest([this](std::string_view line) { log_.emplace_back(line); });
  }

  ~SpanExporterTest() override {
    exporter_.Stop();
    Give(Fail(Code::kUnavailable, "the test ends"));
    loop_.Advance(1min);
    EXPECT_TRUE(ended_);
    log::SetSinkForTest({});
  }

  void SetUp() override {
    async::Start(exporter_.Run(), [this] { ended_ = true; });
  }

  async::Task<Result<v1::TakeSpansResponse>> Take(v1::TakeSpansRequest request) {
    asked_.push_back(request);
    if (request.wait_ms() == 0) {
      co_return std::exchange(more_, {});
    }
    const async::OneShot<Result<v1::TakeSpansResponse>> answer = answer_;
    co_return std::move(co_await answer.Wait());
  }

  /// The engine answers who waits.
  void Give(Result<v1::TakeSpansResponse> answer) {
    async::OneShot<Result<v1::TakeSpansResponse>> waiting = std::exchange(answer_, {});
    waiting.Set(std::move(answer));
    loop_.Advance(0s);
  }

  static v1::TakeSpansResponse SpansOf(const std::vector<std::string>& names) {
    v1::TakeSpansResponse response;
    for (const std::string& name : names) {
      v1::Span& span = *response.add_spans();
      span.set_kind("call");
      span.set_what(name);
    }
    return response;
  }

  void GiveSpans(const std::vector<std::string>& names) {
    Give(SpansOf(names));
    loop_.Advance(1s);
  }

  std::vector<std::string> LogOf(const std::string& text) const {
    std::vector<std::string> lines = log_;
    std::erase_if(lines, [&](const std::string& line) { return !line.contains(text); });
    return lines;
  }

  test::SimulatedLoop loop_;
  FakeCollector collector_;
  std::vector<std::string> log_;
  std::vector<v1::TakeSpansRequest> asked_;
  async::OneShot<Result<v1::TakeSpansResponse>> answer_;
  /// What there is where it does not wait.
  v1::TakeSpansResponse more_;
  bool ended_ = false;
  SpanExporter exporter_{loop_,
                         [this](v1::TakeSpansRequest request) { return Take(std::move(request)); },
                         collector_,
                         {}};
};

TEST_F(SpanExporterTest, SendsWhatComesTogetherInOneRequest) {
  more_ = SpansOf({"Start"});
  Give(SpansOf({"Create"}));
  EXPECT_THAT(collector_.got, IsEmpty()) << "others may follow";
  loop_.Advance(1s);
  EXPECT_THAT(collector_.got, ElementsAre(ElementsAre("Create", "Start")));
  GiveSpans({"Kill"});
  EXPECT_THAT(collector_.got.back(), ElementsAre("Kill"));
}

TEST_F(SpanExporterTest, DoesNotWaitWhereARequestIsFull) {
  Give(SpansOf(std::vector<std::string>(512, "Create")));
  ASSERT_EQ(collector_.got.size(), 1U);
  EXPECT_EQ(collector_.got[0].size(), 512U);
}

TEST_F(SpanExporterTest, AsksForNoMoreThanARequestHolds) {
  GiveSpans({"a", "b"});
  ASSERT_GE(asked_.size(), 2U);
  EXPECT_EQ(asked_[0].most(), 512U);
  EXPECT_GT(asked_[0].wait_ms(), 0U);
  EXPECT_EQ(asked_[1].most(), 510U);
}

TEST_F(SpanExporterTest, SendsNothingWhereThereIsNone) {
  GiveSpans({});
  GiveSpans({});
  EXPECT_THAT(collector_.got, IsEmpty());
  EXPECT_EQ(asked_.size(), 3U) << "it asks again at once: the engine has waited";
}

TEST_F(SpanExporterTest, TellsTheEngineWhatBecameOfThem) {
  OtlpResponse partly;
  partly.mutable_partial_success()->set_rejected_spans(2);
  partly.mutable_partial_success()->set_error_message("too old");
  collector_.answers.emplace_back(std::string());
  collector_.answers.emplace_back(partly.SerializeAsString());
  collector_.answers.emplace_back(Fail(Code::kUnimplemented, "no such service"));
  GiveSpans({"a", "b"});
  EXPECT_EQ(asked_.back().exported(), 2U);
  EXPECT_EQ(asked_.back().refused(), 0U);
  GiveSpans({"a", "b", "c"});
  EXPECT_EQ(asked_.back().exported(), 1U);
  EXPECT_EQ(asked_.back().refused(), 2U);
  GiveSpans({"a"});
  EXPECT_EQ(asked_.back().exported(), 0U);
  EXPECT_EQ(asked_.back().refused(), 1U);
  EXPECT_THAT(LogOf("refuses"), ElementsAre(HasSubstr("too old")));
}

TEST_F(SpanExporterTest, BelievesNoCollectorThatRefusesMoreThanItGot) {
  OtlpResponse wrong;
  wrong.mutable_partial_success()->set_rejected_spans(-5);
  collector_.answers.emplace_back(wrong.SerializeAsString());
  wrong.mutable_partial_success()->set_rejected_spans(1'000'000);
  collector_.answers.emplace_back(wrong.SerializeAsString());
  collector_.answers.emplace_back("\xff no message");
  GiveSpans({"a"});
  EXPECT_EQ(asked_.back().exported(), 1U);
  GiveSpans({"a"});
  EXPECT_EQ(asked_.back().refused(), 1U);
  GiveSpans({"a"});
  EXPECT_EQ(asked_.back().exported(), 1U);
}

TEST_F(SpanExporterTest, TriesAgainWhileTheCollectorIsAway) {
  for (int i = 0; i < 5; ++i) {
    collector_.answers.emplace_back(Fail(Code::kUnavailable, "connection refused"));
  }
  GiveSpans({"a"});
  const size_t asked = asked_.size();
  EXPECT_EQ(collector_.got.size(), 1U);
  loop_.Advance(500ms);
  EXPECT_EQ(collector_.got.size(), 2U);
  loop_.Advance(500ms);
  EXPECT_EQ(collector_.got.size(), 2U) << "the pauses double";
  EXPECT_EQ(asked_.size(), asked) << "nothing more is taken from the engine meanwhile";
  loop_.Advance(1min);
  EXPECT_EQ(collector_.got.size(), 6U);
  EXPECT_THAT(collector_.got.back(), ElementsAre("a"));
  EXPECT_EQ(asked_.back().exported(), 1U);
}

TEST_F(SpanExporterTest, LogsALineForEachChange) {
  collector_.answers.emplace_back(Fail(Code::kUnavailable, "connection refused"));
  collector_.answers.emplace_back(Fail(Code::kDeadlineExceeded, "too slow"));
  GiveSpans({"a"});
  loop_.Advance(1min);
  GiveSpans({"b"});
  EXPECT_THAT(LogOf("tracing.endpoint"), ElementsAre(HasSubstr("connection refused")));
  EXPECT_EQ(LogOf("the collector takes spans").size(), 1U);
  collector_.answers.emplace_back(Fail(Code::kUnavailable, "gone again"));
  GiveSpans({"c"});
  EXPECT_EQ(LogOf("tracing.endpoint").size(), 2U);
}

TEST_F(SpanExporterTest, AsksTheEngineAgainAfterAnError) {
  collector_.answers.emplace_back(std::string());
  GiveSpans({"a"});
  Give(Fail(Code::kUnavailable, "it has ended"));
  const size_t asked = asked_.size();
  loop_.Advance(99ms);
  EXPECT_EQ(asked_.size(), asked);
  loop_.Advance(1ms);
  ASSERT_EQ(asked_.size(), asked + 1);
  EXPECT_EQ(asked_.back().exported(), 1U) << "it had not heard of it";
  Give(Fail(Code::kUnavailable, "it has ended"));
  loop_.Advance(1s);
  EXPECT_EQ(LogOf("from the engine").size(), 1U);
  GiveSpans({"b"});
  EXPECT_EQ(LogOf("gives spans again").size(), 1U);
  EXPECT_THAT(collector_.got.back(), ElementsAre("b"));
}

}  // namespace
}  // namespace gantry::door
