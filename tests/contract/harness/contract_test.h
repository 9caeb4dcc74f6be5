// SPDX-License-Identifier: Apache-2.0
//
// The fixture of all contract tests: one gantry for the program, a test for
// each backend of `TheSetup`, and after each test nothing may be left.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/harness/box.h"
#include "tests/contract/harness/node.h"
#include "tests/contract/harness/setup.h"

namespace gantry::contract {

/// What keeper and engine hold with nothing to do.
struct Baseline {
  uint64_t stored = 0;
  uint64_t watched = 0;
  int keeper_fds = 0;
  int engine_fds = 0;
  size_t helpers = 0;
};

/// Kills and removes all that the tests have made, and keeps them from making more:
/// for a program that is interrupted and ends at once. Any thread.
void EndAllTests();

/// A row of the contract that a backend has. Of checkpoint it must say with UNIMPLEMENTED that
/// it has not.
bool IsSupported(std::string_view backend, std::string_view row);

/// What was first in a sandbox may end before the others.
inline constexpr std::string_view kWithoutTheFirst = "without the first";

class ContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  static Node& node();

  static std::string backend() { return GetParam(); }

  /// An id that no other test of this run has.
  std::string Id(std::string_view suffix = "") const;

  /// A container of this test's backend: announced. Finished after the test.
  Box& Announced(BoxOptions options = {}, std::string_view suffix = "");
  Box& Created(BoxOptions options = {}, std::string_view suffix = "");
  Box& Running(BoxOptions options = {}, std::string_view suffix = "");
  Box& Paused();
  /// Ended, with exit code 7.
  Box& Stopped();

  /// Finishes a container before the test's end.
  void Finish(Box& box);

 private:
  std::string prefix_;
  std::list<Box> boxes_;
};

/// The code of what failed; kOk for what did not.
template <class T>
Code CodeOf(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}

template <class T>
std::string MessageOf(const Result<T>& result) {
  return result ? "" : result.error().message;
}

/// What a call that must not fail gives; where it fails, the test does, with nothing.
template <class T>
T Got(Result<T> result) {
  EXPECT_TRUE(result.has_value()) << MessageOf(result);
  return result ? std::move(*result) : T();
}

/// kill(2), but never with 0, for which a pid that could not be had stands.
bool Signal(pid_t pid, int signal);

template <class T>
::testing::AssertionResult HasCode(const Result<T>& result, Code code) {
  if (CodeOf(result) == code) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << CodeName(CodeOf(result)) << " '" << MessageOf(result)
                                       << "' instead of " << CodeName(code);
}

}  // namespace gantry::contract

/// `call`, a Result, has this code.
#define EXPECT_CODE(call, expected) \
  EXPECT_TRUE(::gantry::contract::HasCode((call), ::gantry::Code::expected))
#define EXPECT_OK(call) EXPECT_CODE(call, kOk)
#define ASSERT_OK(call) ASSERT_TRUE(::gantry::contract::HasCode((call), ::gantry::Code::kOk))

/// All backends; the name of the backend is part of the test's.
#define INSTANTIATE_CONTRACT(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Backends, suite,                                         \
                           ::testing::ValuesIn(::gantry::contract::BackendNames()), \
                           [](const auto& parameter) { return parameter.param; })
