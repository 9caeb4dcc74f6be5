// SPDX-License-Identifier: Apache-2.0
//
// Signals to guests, which are each the first process of their namespace: any number is taken, and
// a stop needs no SIGKILL. How long that takes is not asked: the grace period is longer than the
// test, and the exit code says which signal it was.
#include <signal.h>

#include <algorithm>
#include <array>

#include "tests/harness/raw_guest.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

constexpr uint64_t kRunningState = 2;
constexpr uint32_t kLastSignal = 64;
/// Those that end a guest.
constexpr std::array<uint32_t, 7> kEndingSignals = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,
                                                    SIGUSR2, SIGTERM, SIGKILL};

class WasmSignals : public WasmTest {
 protected:
  static void ExpectTaken(RawGuest& guest, uint32_t signal) {
    const Status killed = guest.Kill(signal);
    EXPECT_TRUE(killed) << "signal " << signal << ": " << killed.error_or(Error{}).message;
  }
};

TEST_F(WasmSignals, OfAnyNumberAreTakenAndMostDoNothing) {
  RawGuest guest(node(), Id(), Tool({"sleep", "1000000"}));
  ASSERT_TRUE(guest.Run());
  for (uint32_t signal = 1; signal <= kLastSignal; ++signal) {
    if (std::ranges::contains(kEndingSignals, signal) || signal == SIGSTOP) {
      continue;
    }
    ExpectTaken(guest, signal);
  }
  ExpectTaken(guest, SIGSTOP);
  ExpectTaken(guest, SIGCONT);
  EXPECT_EQ(guest.State()->status, kRunningState);
  EXPECT_EQ(guest.Kill(kLastSignal + 1).error_or(Error{}).code, Code::kInvalidArgument);
  ExpectTaken(guest, SIGTERM);
  EXPECT_EQ(guest.Wait().value_or(0), 128U + SIGTERM);
  EXPECT_TRUE(guest.Finish());
}

TEST_F(WasmSignals, EndAGuestThatHasNotStarted) {
  for (const uint32_t signal : kEndingSignals) {
    RawGuest guest(node(), Id("-" + std::to_string(signal)), Tool({"sleep", "1000000"}));
    ASSERT_TRUE(guest.Create());
    ExpectTaken(guest, signal);
    EXPECT_EQ(guest.Wait().value_or(0), 128U + signal);
    EXPECT_FALSE(guest.Start()) << "it has ended";
    EXPECT_TRUE(guest.Finish());
  }
}

}  // namespace
}  // namespace gantry::e2e
