// SPDX-License-Identifier: Apache-2.0
//
// A collector over gRPC, with gRPC's own server at the other end.
#include "core/door/otlp_collector.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/door/otlp_request.h"
#include "core/os/fs.h"
#include "tests/harness/collector_double.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::door {
namespace {

using testing::ElementsAre;

constexpr std::chrono::minutes kLong(1);

class OtlpCollectorTest : public testing::Test {
 protected:
  std::string socket() const { return dir_.path() + "/otel.sock"; }

  std::unique_ptr<OtlpCollector> Make(std::chrono::milliseconds limit = kLong) {
    return std::make_unique<OtlpCollector>(loop_, "unix:" + socket(), limit);
  }

  static std::string Request() {
    v1::Span span;
    span.set_kind("call");
    span.set_what("Create");
    span.set_trace_id("0123456789abcdef");
    return EncodeSpans({"1", "n"}, {span});
  }

  Result<std::string> Export(OtlpCollector& collector) {
    return test::Await(loop_, collector.Export(Request()));
  }

  const os::TempDir dir_ = std::move(*os::TempDir::Create());
  async::Loop loop_;
  test::CollectorDouble double_;
};

TEST_F(OtlpCollectorTest, IsGivenSpansByItsOwnMethod) {
  ASSERT_TRUE(double_.Listen(socket()));
  const auto answer = Export(*Make());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(double_.methods(),
              ElementsAre("/opentelemetry.proto.collector.trace.v1.TraceService/Export"));
  ASSERT_EQ(double_.spans().size(), 1U);
  EXPECT_EQ(double_.spans()[0].name(), "Create");
  EXPECT_EQ(double_.spans()[0].trace_id(), "0123456789abcdef");
}

TEST_F(OtlpCollectorTest, AnswersWhatItDidNotTake) {
  ASSERT_TRUE(double_.Listen(socket()));
  test::ExportResponse partly;
  partly.mutable_partial_success()->set_rejected_spans(1);
  double_.Answer(0, "", partly);
  const auto answer = Export(*Make());
  ASSERT_TRUE(answer);
  test::ExportResponse got;
  ASSERT_TRUE(got.ParseFromString(*answer));
  EXPECT_EQ(got.partial_success().rejected_spans(), 1);
}

TEST_F(OtlpCollectorTest, HasItsErrorsPassedOn) {
  ASSERT_TRUE(double_.Listen(socket()));
  double_.Answer(7, "no such tenant");
  const auto answer = Export(*Make());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kPermissionDenied);
  EXPECT_EQ(answer.error().message, "no such tenant");
}

TEST_F(OtlpCollectorTest, IsUnavailableWhereNobodyListens) {
  const auto collector = Make();
  EXPECT_EQ(Export(*collector).error().code, Code::kUnavailable);
}

TEST_F(OtlpCollectorTest, IsFoundAgainWhenItIsBack) {
  ASSERT_TRUE(double_.Listen(socket()));
  const auto collector = Make();
  ASSERT_TRUE(Export(*collector));
  double_.GoAway();
  EXPECT_FALSE(Export(*collector));
  test::CollectorDouble next;
  ASSERT_TRUE(next.Listen(socket()));
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return Export(*collector).has_value(); }));
  EXPECT_EQ(next.spans().size(), 1U);
}

TEST_F(OtlpCollectorTest, HasALimitToAnswer) {
  ASSERT_TRUE(double_.Listen(socket()));
  double_.HoldAnswers();
  const auto answer = Export(*Make(std::chrono::milliseconds(50)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kDeadlineExceeded);
}

TEST_F(OtlpCollectorTest, LetsGoOfACallWhenItIsDestroyed) {
  ASSERT_TRUE(double_.Listen(socket()));
  double_.HoldAnswers();
  std::optional<Result<std::string>> answer;
  auto collector = Make();
  async::Start(test::Store(collector->Export(Request()), &answer));
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return !double_.requests().empty(); }));
  collector.reset();
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return answer.has_value(); }));
  EXPECT_EQ(answer->error().code, Code::kCanceled);
}

}  // namespace
}  // namespace gantry::door
