// SPDX-License-Identifier: Apache-2.0
// Which function is run, and what of a module is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

GuestEnd RunEntry(const std::string& entry) {
  return RunGuest({.name = "reactor", .args = {"reactor"}, .entry = entry});
}

TEST(Entries, AFunctionIsRunByNameAfterInitialize) {
  const GuestEnd end = RunEntry("one");
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 41u);
}

TEST(Entries, WhatAFunctionReturnsIsTheCode) {
  EXPECT_EQ(RunEntry("two").code, 42u);
  EXPECT_EQ(RunEntry("high").code, 200u);
  const GuestEnd end = RunEntry("silent");
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0u);
}

TEST(Entries, OneThatIsNotThereIsNamedWithThoseThatAre) {
  const GuestEnd end = RunEntry("three");
  EXPECT_EQ(end.prepared, GANTRY_WASM_MISSING);
  EXPECT_THAT(end.why, AllOf(HasSubstr("'three'"), HasSubstr("'one'"), HasSubstr("'two'"),
                             Not(HasSubstr("'wants'")), Not(HasSubstr("'memory'"))));
}

TEST(Entries, AReactorHasNoStart) {
  const GuestEnd end = RunEntry("");
  EXPECT_EQ(end.prepared, GANTRY_WASM_MISSING);
  EXPECT_THAT(end.why, HasSubstr("'_start'"));
}

TEST(Entries, OneWithParametersIsNone) {
  EXPECT_EQ(RunEntry("wants").prepared, GANTRY_WASM_MISSING);
  EXPECT_EQ(RunEntry("memory").prepared, GANTRY_WASM_MISSING);
}

TEST(Entries, TheNameOfOneIsNoLineOfOurs) {
  EXPECT_THAT(RunEntry("a\nb\x1b[2J").why,
              AllOf(HasSubstr("'a\\nb"), Not(HasSubstr("\n")), Not(HasSubstr("\x1b"))));
}

TEST(Entries, AnImportThatNobodyHasIsNamed) {
  const GuestEnd end = RunGuest({.name = "missing", .args = {"missing"}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_MISSING);
  EXPECT_THAT(end.why, HasSubstr("imports 'env' 'foo': nothing here provides it"));
}

}  // namespace
}  // namespace gantry::wasm
