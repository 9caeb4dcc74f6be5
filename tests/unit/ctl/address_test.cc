// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/address.h"

#include <gtest/gtest.h>

#include "core/ctl/since.h"

namespace gantry::ctl {
namespace {

TEST(Address, IsAPathOrSaysItsProtocol) {
  using enum Address::Protocol;
  for (const auto& [text, protocol, path] :
       {std::tuple("/run/s", kTtrpc, "/run/s"), std::tuple("s", kTtrpc, "s"),
        std::tuple("ttrpc+unix:///run/s", kTtrpc, "/run/s"),
        std::tuple("unix:///run/s", kGrpc, "/run/s"),
        std::tuple("grpc+unix:///run/s", kGrpc, "/run/s")}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->protocol, protocol) << text;
    EXPECT_EQ(address->path, path);
  }
}

TEST(Address, OfAnythingElseIsRefused) {
  for (const char* text : {"tcp://127.0.0.1:1", "unix://run/s", "unix://", "grpc+unix://"}) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Code::kInvalidArgument);
  }
}

constexpr int64_t kOneSecond = 1'000'000'000;
/// 2026-01-31T08:15:30Z.
constexpr int64_t kSinceNow = 1'769'847'330 * kOneSecond;

TEST(Since, IsSoLongAgoOrATime) {
  EXPECT_EQ(*ParseSince("30s", kSinceNow), kSinceNow - 30 * kOneSecond);
  EXPECT_EQ(*ParseSince("10m", kSinceNow), kSinceNow - 600 * kOneSecond);
  EXPECT_EQ(*ParseSince("2h", kSinceNow), kSinceNow - 7200 * kOneSecond);
  EXPECT_EQ(*ParseSince("7d", kSinceNow), kSinceNow - 7 * 86'400 * kOneSecond);
  EXPECT_EQ(*ParseSince("2026-01-31T08:15:30Z", 0), kSinceNow);
  EXPECT_EQ(*ParseSince("2026-01-31T08:15:30.25Z", 0), kSinceNow + kOneSecond / 4);
}

TEST(Since, OfAnythingElseIsRefused) {
  for (const char* text : {"", "s", "-1s", "1", "1w", "1.5h", "99999999999999999999s", "99999999d",
                           "yesterday", "2026-01-31", "2026-01-31T08:15:30Zx"}) {
    const auto since = ParseSince(text, kSinceNow);
    ASSERT_FALSE(since) << text;
    EXPECT_EQ(since.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gantry::ctl
