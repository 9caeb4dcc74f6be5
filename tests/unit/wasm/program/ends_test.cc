// SPDX-License-Identifier: Apache-2.0
//
// How a guest ends, and what its container's exit code is then.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/ask_program.h>

#include "tests/unit/wasm/program/guest_fixture.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

using EndsTest = GuestTest;

TEST_F(EndsTest, ItsExitCodeIsTheGuests) {
  EXPECT_EQ(Run("say within\nexit 0"), "within\nexit 0");
  EXPECT_EQ(Run("exit 42"), "exit 42");
  EXPECT_EQ(Run("exit 255"), "exit 255");
  EXPECT_EQ(Run("exit 256"), "exit 0");
}

TEST_F(EndsTest, ATrapIsToldWithItsCode) {
  EXPECT_EQ(Run("say before\ntrap wasm trap: unreachable"),
            "before\nwasm trap: unreachable\nexit 134");
  const std::string longest(9000, 'x');
  EXPECT_EQ(Run("trap " + longest), longest + "\nexit 134");
}

TEST_F(EndsTest, WhatCannotBeBroughtUpIsToldWithAnotherOne) {
  EXPECT_EQ(Run("fail no memory for its instance"),
            "gantry-wasm: no memory for its instance\nexit 126");
}

TEST_F(EndsTest, WhatCannotBePreparedFailsTheMaking) {
  EXPECT_EQ(Run("refuse 1 it is cut"), "INVALID_ARGUMENT: prepare 'sh' in scripted 1.0: it is cut");
  EXPECT_EQ(Run("refuse 2 import 'env' 'f'"),
            "FAILED_PRECONDITION: prepare 'sh' in scripted 1.0: import 'env' 'f'");
  EXPECT_EQ(Run("refuse 3 no directory '/'"),
            "INTERNAL: prepare 'sh' in scripted 1.0: no directory '/'");
}

TEST_F(EndsTest, SignalsEndItAsPid1) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    for (const char* const place : {"spin", "wait"}) {
      const auto guest = Made("say up\n" + std::string(place));
      ASSERT_TRUE(guest->Open());
      ASSERT_EQ(guest->Output("up\n"), "up\n");
      guest->Signal(signal);
      EXPECT_EQ(guest->End(), 128U + static_cast<uint32_t>(signal)) << place;
    }
  }
}

TEST_F(EndsTest, SignalsEndItAtTheGate) {
  const auto guest = Made("say never");
  guest->Signal(SIGTERM);
  EXPECT_EQ(guest->End(), 128U + SIGTERM);
  EXPECT_FALSE(guest->Open()) << "it has ended";
}

TEST_F(EndsTest, AClosedPipeIsAnErrorOfTheGuests) {
  EXPECT_THAT(Run("read /proc/self/status"), HasSubstr("\nSigIgn:\t0000000000001000\n"))
      << "SIGPIPE alone";
}

TEST_F(EndsTest, AskedWhatItIsItNamesItsEngine) {
  EXPECT_EQ(AskProgram({.program = GANTRY_WASM_PROGRAM, .arguments = {"describe"}}).value(),
            "scripted 1.0\n");
}

TEST_F(EndsTest, KillIsKill) {
  const auto guest = Made("say up\nspin");
  ASSERT_TRUE(guest->Open());
  ASSERT_EQ(guest->Output("up\n"), "up\n");
  guest->Signal(SIGKILL);
  EXPECT_EQ(guest->End(), 137U);
}

}  // namespace
}  // namespace gantry::wasm
