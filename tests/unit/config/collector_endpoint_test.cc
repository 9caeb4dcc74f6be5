// SPDX-License-Identifier: Apache-2.0
#include "core/config/collector_endpoint.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::config {
namespace {

TEST(CollectorEndpoint, IsAPortOrASocket) {
  EXPECT_EQ(*CollectorTarget("http://127.0.0.1:4317"), "dns:127.0.0.1:4317");
  EXPECT_EQ(*CollectorTarget("http://collector.monitoring.svc:4317/"),
            "dns:collector.monitoring.svc:4317");
  EXPECT_EQ(*CollectorTarget("http://[::1]:65535"), "dns:[::1]:65535");
  EXPECT_EQ(*CollectorTarget("unix:///run/otel.sock"), "unix:/run/otel.sock");
}

TEST(CollectorEndpoint, IsNothingElse) {
  for (const std::string& text :
       {std::string(), std::string("collector"), std::string("127.0.0.1:4317"),
        std::string("http://"), std::string("http://:4317"), std::string("http://host"),
        std::string("http://host:"), std::string("http://host:0"), std::string("http://host:65536"),
        std::string("http://host:4317/v1/traces"), std::string("http://user@host:4317"),
        std::string("http://a,b:4317"), std::string("http://::1:4317"),
        std::string("http://[]:4317"), "http://" + std::string(254, 'a') + ":4317",
        std::string("unix://run/otel.sock"), std::string("unix:/run/otel.sock"),
        "unix:///" + std::string(107, 'a'), std::string("grpc://host:4317")}) {
    const auto target = CollectorTarget(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument);
    EXPECT_THAT(target.error().message, testing::StartsWith("expected http://HOST:PORT"));
  }
}

TEST(CollectorEndpoint, OfTlsSaysWhatToDoInstead) {
  EXPECT_THAT(CollectorTarget("https://collector:4317").error().message,
              testing::HasSubstr("name a collector on this node"));
}

}  // namespace
}  // namespace gantry::config
