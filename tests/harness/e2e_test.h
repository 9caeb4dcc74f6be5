// SPDX-License-Identifier: Apache-2.0
//
// The fixture of every test against a real containerd. One containerd and one
// gantry serve the whole program; after each test nothing of it may be left.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/harness/node.h"
#include "tests/harness/task_list.h"

namespace gantry::e2e {

inline constexpr const char* kImage = "docker.io/library/busybox:gantry";

using Words = std::vector<std::string>;

class E2eTest : public ::testing::Test {
 protected:
  /// containerd and, but with the stock shim, gantry's keeper run then.
  void SetUp() override;
  void TearDown() override;

  static Node& node();

  static const Settings& settings() { return node().settings(); }

  /// An id that no other test of this run has.
  std::string Id(std::string_view suffix = "");

  /// The words of `ctr run FLAGS IMAGE id COMMAND`.
  static Words RunWords(const Words& flags, const std::string& id, const Words& command);
  /// `ctr run FLAGS IMAGE id COMMAND` to its end.
  static Output RunContainer(const Words& flags, const std::string& id, const Words& command,
                             std::optional<std::string_view> input = {},
                             Duration deadline = kDeadline);
  /// `ctr run -d`: fails the test when it does not start.
  static void StartDetached(const std::string& id, const Words& command, const Words& flags = {});
  /// `ctr task exec FLAGS id COMMAND`.
  static Words ExecWords(const Words& flags, const std::string& id, const Words& command);
  static Output Exec(const std::string& id, const Words& command, const Words& flags = {},
                     std::optional<std::string_view> input = {}, Duration deadline = kDeadline);
  /// Kills what runs and removes task and container; fails the test when it
  /// cannot.
  static void Remove(const std::string& id);

  static Output Ctr(const Words& words) { return node().Ctr(words); }

  /// From `ctr task ls`: pid of init and state; pid 0 when there is no task.
  static Task FindTask(const std::string& id);
  /// Waits for containerd's word that the task has this state.
  static bool WaitForState(const std::string& id, const std::string& state);

 private:
  static std::array<std::string, 3> LogPaths();
  void ShowLogs() const;

  std::string prefix_;
  std::array<size_t, 3> log_begins_ = {};
};

/// A `ctr run` or `ctr exec` that a test talks to.
Program StartCtr(const Node& node, const Words& words, const Program::Options& options);

/// A terminal's output with its carriage returns taken out.
std::string WithoutReturns(std::string text);

}  // namespace gantry::e2e
