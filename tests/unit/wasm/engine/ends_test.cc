// SPDX-License-Identifier: Apache-2.0
// How guests end: with a code, by a trap, or not at all.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

class ExitCode : public testing::TestWithParam<int> {};

TEST_P(ExitCode, ArrivesAsTheGuestSaidIt) {
  const GuestEnd end =
      RunGuest({.name = "tool", .args = {"tool", "exit", std::to_string(GetParam())}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, static_cast<uint32_t>(GetParam()));
}

// 126 and above are no codes to the engine's own function.
INSTANTIATE_TEST_SUITE_P(Ends, ExitCode, testing::Values(0, 1, 42, 125, 126, 200, 255));

TEST(Ends, OfACodeTheLastByteIsLeft) {
  const GuestEnd end = RunGuest({.name = "exit", .args = {"exit"}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 200u);
}

TEST(Ends, ATrapIsSaidWithItsBacktrace) {
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "trap"}});
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED);
  EXPECT_THAT(end.why, AllOf(HasSubstr("unreachable"), HasSubstr("Trap"), HasSubstr("main")));
}

TEST(Ends, EndlessRecursionIsATrap) {
  const GuestEnd end = RunGuest({.name = "recurse", .args = {"recurse"}});
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED) << "status " << end.status;
  EXPECT_THAT(end.why, HasSubstr("call stack exhausted"));
  EXPECT_LE(end.why.size(), 8192u);
}

// The guest's stack is not the process's.
TEST(Ends, EndlessRecursionIsATrapBelowASmallLimitOfTheStack) {
  const GuestEnd end = RunGuest({.name = "recurse", .args = {"recurse"}, .stack = 256 << 10});
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED) << "status " << end.status;
}

TEST(Ends, ATrapOfTheStartFunctionIsATrap) {
  const GuestEnd end = RunGuest({.name = "start_trap", .args = {"start_trap"}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED);
  EXPECT_THAT(end.why, HasSubstr("unreachable"));
}

// Were it run while it is prepared, Create would never be answered.
TEST(Ends, AStartFunctionIsNotRunBeforeTheGuestIs) {
  const GuestEnd end =
      RunGuest({.name = "start_spin", .args = {"start_spin"}, .only_prepare = true});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
}

TEST(Ends, ASpinningGuestCanBeKilled) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  RunningGuest guest({.name = "tool", .args = {"tool", "spin"}, .out = out[1]});
  close(out[1]);
  char said[6] = "";
  EXPECT_EQ(read(out[0], said, 5), 5);
  EXPECT_STREQ(said, "spins");
  kill(guest.Pid(), SIGTERM);
  const GuestEnd end = guest.End();
  EXPECT_TRUE(WIFSIGNALED(end.status));
  close(out[0]);
}

TEST(Ends, TwoProcessesHaveOtherRandomBytes) {
  const GuestEnd first = RunGuest({.name = "tool", .args = {"tool", "random"}});
  const GuestEnd second = RunGuest({.name = "tool", .args = {"tool", "random"}});
  EXPECT_THAT(first.out, SizeIs(33));
  EXPECT_NE(first.out, second.out);
}

TEST(Ends, TheEngineSaysItsVersion) { EXPECT_STREQ(gantry_wasm_engine(), "wasmtime 48.0.8"); }

}  // namespace
}  // namespace gantry::wasm
