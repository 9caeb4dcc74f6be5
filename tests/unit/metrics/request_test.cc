// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/request.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace gantry::metrics {
namespace {

std::string Get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

TEST(MetricsRequest, IsReadWhenItsHeadIsWhole) {
  const std::string text = Get("/metrics");
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_EQ(ReadRequest(text.substr(0, bytes)).status, 0) << bytes;
  }
  const Request request = ReadRequest(text + "GET ");
  EXPECT_EQ(request.status, 200);
  EXPECT_EQ(request.bytes, text.size());
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.head_only);
  EXPECT_EQ(request.format, TextFormat::kPrometheus);
}

TEST(MetricsRequest, TakesAQueryAndClosingClients) {
  EXPECT_EQ(ReadRequest(Get("/metrics?x=1")).status, 200);
  EXPECT_FALSE(ReadRequest(Get("/metrics", "Connection: close\r\n")).keep_alive);
  EXPECT_FALSE(ReadRequest("GET /metrics HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(ReadRequest("HEAD /metrics HTTP/1.1\r\n\r\n").head_only);
}

struct Bad {
  const char* name;
  std::string text;
  int status;
};

class MetricsRequestBad : public testing::TestWithParam<Bad> {};

TEST_P(MetricsRequestBad, IsRefusedAndTheLast) {
  const Request request = ReadRequest(GetParam().text);
  EXPECT_EQ(request.status, GetParam().status) << request.complaint;
  EXPECT_FALSE(request.complaint.empty());
  EXPECT_FALSE(request.keep_alive);
}

INSTANTIATE_TEST_SUITE_P(
    All, MetricsRequestBad,
    testing::Values(
        Bad{"OtherPath", Get("/"), 404}, Bad{"LongerPath", Get("/metrics/x"), 404},
        Bad{"Post", "POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405},
        Bad{"Delete", "DELETE /metrics HTTP/1.1\r\n\r\n", 405},
        Bad{"Body", Get("/metrics", "Content-Length: 3\r\n"), 400},
        Bad{"Chunks", Get("/metrics", "Transfer-Encoding: chunked\r\n"), 400},
        Bad{"TwoLengths", Get("/metrics", "Content-Length: 1\r\nContent-Length: 2\r\n"), 400},
        Bad{"HugeLength", Get("/metrics", "Content-Length: 99999999999999999999\r\n"), 400},
        Bad{"Garbage", "\x16\x03\x01\x02\r\n\r\n", 400},
        Bad{"Zeros", std::string("G\0T / HTTP/1.1\r\n\r\n", 18), 400},
        Bad{"NoVersion", "GET /metrics\r\n\r\n", 400},
        Bad{"OtherVersion", "GET /metrics HTTP/2.0\r\n\r\n", 400},
        Bad{"BadField", "GET /metrics HTTP/1.1\r\nA B: c\r\n\r\n", 400},
        Bad{"LongHead", std::string(kMaxHeadBytes, 'x'), 431},
        Bad{"LongField", Get("/metrics", "A: " + std::string(kMaxHeadBytes, 'a') + "\r\n"), 431}),
    [](const auto& one) { return one.param.name; });

struct Accepted {
  const char* accept;
  TextFormat format;
};

class MetricsAccept : public testing::TestWithParam<Accepted> {};

TEST_P(MetricsAccept, ChoosesTheFormat) {
  EXPECT_EQ(FormatFor(GetParam().accept), GetParam().format) << GetParam().accept;
}

// With nothing behind it that may be read: a sanitizer sees it.
TEST(MetricsRequest, ReadsNothingBehindATypeInCapitals) {
  const std::string_view type = "application/openmetrics-texT";
  const std::vector<char> exactly(type.begin(), type.end());
  EXPECT_EQ(FormatFor({exactly.data(), exactly.size()}), TextFormat::kOpenMetrics);
}

INSTANTIATE_TEST_SUITE_P(
    All, MetricsAccept,
    testing::Values(Accepted{"", TextFormat::kPrometheus}, Accepted{"*/*", TextFormat::kPrometheus},
                    Accepted{"text/plain", TextFormat::kPrometheus},
                    Accepted{"application/openmetrics-text", TextFormat::kOpenMetrics},
                    Accepted{"Application/OpenMetrics-Text", TextFormat::kOpenMetrics},
                    // As Prometheus 2 and 3 send it.
                    Accepted{
                        "application/openmetrics-text;version=1.0.0;q=0.5,"
                        "application/openmetrics-text;version=0.0.1;q=0.4,"
                        "text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,/;q=0.1",
                        TextFormat::kOpenMetrics},
                    Accepted{"text/plain;version=0.0.4;q=1, application/openmetrics-text ; q=0.5",
                             TextFormat::kPrometheus},
                    Accepted{"application/openmetrics-text;q=0", TextFormat::kPrometheus},
                    Accepted{"application/openmetrics-text;q=-1", TextFormat::kPrometheus},
                    Accepted{"application/openmetrics-text;q=nan", TextFormat::kPrometheus},
                    Accepted{"application/openmetrics-text;q=x", TextFormat::kPrometheus},
                    Accepted{",;,=;q;q=,;;,", TextFormat::kPrometheus}));

}  // namespace
}  // namespace gantry::metrics
