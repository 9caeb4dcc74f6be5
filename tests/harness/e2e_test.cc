// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/e2e_test.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "tests/harness/environment.h"
#include "tests/harness/leftovers.h"
#include "tests/harness/not_here.h"

namespace gantry::e2e {

void E2eTest::SetUp() {
  static int counter = 0;
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "t%04d", ++counter);
  prefix_ = text.data();
  const Environment& environment = Environment::Get();
  if (!environment.unavailable().empty()) {
    GTEST_SKIP() << environment.unavailable();
  }
  if (const std::string reason = WhyNotHere(node().settings()); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  ASSERT_EQ(environment.failure(), "");
  const auto paths = LogPaths();
  for (size_t i = 0; i < paths.size(); ++i) {
    log_begins_[i] = ReadText(paths[i]).size();
  }
  if (!node().has_containerd()) {
    // A test that failed had taken it away.
    ASSERT_EQ(node().StartContainerd(), "");
  }
  if (!settings().stock() && node().Keeper().pid == 0) {
    // A test before had ended it: the next container brings another.
    const Output first = RunContainer({"--rm"}, Id("-keeper"), {"true"});
    ASSERT_EQ(first.status, 0) << first.Text();
    ASSERT_NE(node().Keeper().pid, 0) << "no keeper runs";
  }
}

void E2eTest::TearDown() {
  Environment& environment = Environment::Get();
  if (!environment.unavailable().empty() || !environment.failure().empty() || IsSkipped()) {
    return;
  }
  if (HasFailure()) {
    ShowLogs();
    Sweep(node());
    return;
  }
  const std::string left =
      Leftovers(node(), environment.baseline(), prefix_, environment.known_leftovers());
  EXPECT_EQ(left, "") << "left after the test";
  if (!left.empty()) {
    Sweep(node());
  }
}

std::array<std::string, 3> E2eTest::LogPaths() {
  return {node().log_path(), settings().run_dir + "/keeper.log",
          settings().run_dir + "/gantry.log"};
}

void E2eTest::ShowLogs() const {
  constexpr size_t kMost = 256 << 10;
  const auto paths = LogPaths();
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string text = ReadText(paths[i]);
    const size_t begin = std::max(std::min<size_t>(log_begins_[i], text.size()),
                                  text.size() > kMost ? text.size() - kMost : size_t{0});
    std::fprintf(stderr, "--- %s:\n%s---\n", paths[i].c_str(), text.c_str() + begin);
  }
}

Node& E2eTest::node() { return Environment::Get().node(); }

std::string E2eTest::Id(std::string_view suffix) { return prefix_ + std::string(suffix); }

Words E2eTest::RunWords(const Words& flags, const std::string& id, const Words& command) {
  Words words{"run", "--runtime", settings().runtime, "--fifo-dir", node().fifo_dir()};
  if (settings().stock()) {
    words.insert(words.end(), {"--runc-binary", settings().oci});
  }
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {kImage, id});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Output E2eTest::RunContainer(const Words& flags, const std::string& id, const Words& command,
                             std::optional<std::string_view> input, Duration deadline) {
  return node().Ctr(RunWords(flags, id, command), input, deadline);
}

void E2eTest::StartDetached(const std::string& id, const Words& command, const Words& flags) {
  Words all{"-d"};
  all.insert(all.end(), flags.begin(), flags.end());
  const Output started = RunContainer(all, id, command);
  ASSERT_EQ(started.status, 0) << started.Text();
}

Words E2eTest::ExecWords(const Words& flags, const std::string& id, const Words& command) {
  static int counter = 0;
  Words words{"tasks",           "exec",      "--fifo-dir",
              node().fifo_dir(), "--exec-id", "x" + std::to_string(++counter)};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back(id);
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Output E2eTest::Exec(const std::string& id, const Words& command, const Words& flags,
                     std::optional<std::string_view> input, Duration deadline) {
  return node().Ctr(ExecWords(flags, id, command), input, deadline);
}

void E2eTest::Remove(const std::string& id) {
  const Task task = FindTask(id);
  if (task.pid != 0) {
    const Output removed = Ctr({"tasks", "rm", "-f", id});
    EXPECT_NE(removed.status, Output::kTimedOut) << removed.Text();
  }
  EXPECT_EQ(FindTask(id).pid, 0);
  const Output removed = Ctr({"containers", "rm", id});
  EXPECT_EQ(removed.status, 0) << removed.Text();
}

Task E2eTest::FindTask(const std::string& id) { return TaskIn(Ctr({"tasks", "ls"}).out, id); }

bool E2eTest::WaitForState(const std::string& id, const std::string& state) {
  return Eventually([&] { return FindTask(id).state == state; });
}

Program StartCtr(const Node& node, const Words& words, const Program::Options& options) {
  return Program(node.CtrWords(words), options);
}

std::string WithoutReturns(std::string text) {
  std::erase(text, '\r');
  return text;
}

}  // namespace gantry::e2e
