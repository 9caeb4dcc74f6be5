// SPDX-License-Identifier: Apache-2.0
// How much memory a guest gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

TEST(Limits, AllocationsFailAboveTheLimit) {
  const GuestEnd end =
      RunGuest({.name = "tool", .args = {"tool", "grow", "100"}, .memory = 32 << 20});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  const int got = std::atoi(end.out.c_str());
  EXPECT_GE(got, 25) << end.out;
  EXPECT_LT(got, 32) << end.out;
}

TEST(Limits, WithoutOneThereIsWhatTheGuestWants) {
  EXPECT_EQ(RunGuest({.name = "tool", .args = {"tool", "grow", "40"}}).out, "40 MiB\n");
}

TEST(Limits, AModuleThatBeginsAboveItIsRefusedWithBothNumbers) {
  const GuestEnd end = RunGuest({.name = "wide", .args = {"wide"}, .memory = 1 << 20});
  EXPECT_EQ(end.end, GANTRY_WASM_FAILED);
  EXPECT_THAT(end.why, HasSubstr("memory")) << end.why;
  const GuestEnd enough = RunGuest({.name = "wide", .args = {"wide"}, .memory = 4 << 20});
  EXPECT_EQ(enough.end, GANTRY_WASM_EXITED) << enough.why;
  EXPECT_EQ(enough.code, 5u);
}

}  // namespace
}  // namespace gantry::wasm
