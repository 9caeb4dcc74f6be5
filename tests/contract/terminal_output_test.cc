// SPDX-License-Identifier: Apache-2.0
//
// What a terminal shows comes to its client whole, to the last byte before its end.
// GANTRY_CONTRACT_TERMINALS: how many execs; GANTRY_CONTRACT_CONTAINERS: how many containers;
// GANTRY_CONTRACT_NUMBERS: how much each says.
#include <cstdlib>
#include <functional>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/fifo_reader.h"

namespace gantry::contract {
namespace {

/// More than pipes and terminal hold between them, four times over: what is said is on its
/// way when an engine goes.
constexpr int kOnTheWay = 500'000;

int Setting(const char* name, int otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? otherwise : std::atoi(value);
}

/// 1 to `last`, and what a terminal makes of the end of a line.
std::string Numbers(int last) {
  std::string text;
  for (int i = 1; i <= last; ++i) {
    text += std::to_string(i) + (i == last ? "\r\n" : " ");
  }
  return text;
}

class TerminalOutput : public ContractTest {
 protected:
  static std::vector<std::string> Say(int last) { return {"seq", "-s", " ", std::to_string(last)}; }

  std::vector<std::string> Say() const { return Say(last_); }

  /// An exec says all numbers; `change_engine` is called at each fourth of them.
  void ExpectWholeAcross(const std::function<void()>& change_engine) {
    const Box& box = Running();
    FifoReader out(path_);
    ASSERT_OK(box.Exec("talks", Say(kOnTheWay), true, path_));
    ASSERT_OK(box.Start("talks"));
    for (int fourth = 1; fourth <= 3; ++fourth) {
      ASSERT_TRUE(out.ReadUntil(" " + std::to_string(kOnTheWay / 4 * fourth) + " "));
      ASSERT_NO_FATAL_FAILURE(change_engine());
    }
    ASSERT_TRUE(out.ReadToEnd());
    const std::string whole = Numbers(kOnTheWay);
    EXPECT_TRUE(out.text() == whole) << out.text().size() << " bytes instead of " << whole.size();
    EXPECT_EQ(Got(box.Wait("talks")).exit_status(), 0U);
    EXPECT_OK(box.Delete("talks"));
  }

  const int last_ = Setting("GANTRY_CONTRACT_NUMBERS", 20'000);
  const std::string whole_ = Numbers(last_);
  const std::string path_ = node().root() + "/" + Id() + ".out";
};

TEST_P(TerminalOutput, OfExecsIsWhole) {
  // For as long as thousands of them may take.
  const Box& box = Running({.args = {"sleep", "100000"}});
  const int execs = Setting("GANTRY_CONTRACT_TERMINALS", 200);
  for (int i = 0; i < execs; ++i) {
    const std::string exec = "terminal-" + std::to_string(i);
    FifoReader out(path_);
    ASSERT_OK(box.Exec(exec, Say(), true, path_));
    ASSERT_OK(box.Start(exec));
    ASSERT_TRUE(out.ReadToEnd());
    ASSERT_TRUE(out.text() == whole_)
        << exec << ": " << out.text().size() << " bytes instead of " << whole_.size();
    ASSERT_OK(box.Wait(exec));
    ASSERT_OK(box.Delete(exec));
  }
}

TEST_P(TerminalOutput, OfContainersIsWhole) {
  const int containers = Setting("GANTRY_CONTRACT_CONTAINERS", 20);
  for (int i = 0; i < containers; ++i) {
    FifoReader out(path_);
    Box& box = Running({.args = Say(), .terminal = true, .out = path_}, std::to_string(i));
    ASSERT_TRUE(out.ReadToEnd());
    EXPECT_TRUE(out.text() == whole_)
        << "container " << i << ": " << out.text().size() << " bytes instead of " << whole_.size();
    Finish(box);
  }
}

TEST_P(TerminalOutput, OfAnExecIsWholeAcrossEnginesThatAreKilled) {
  ExpectWholeAcross([] { node().KillEngine(); });
}

TEST_P(TerminalOutput, OfAnExecIsWholeAcrossUpgradesOfTheEngine) {
  ExpectWholeAcross([] { ASSERT_OK(node().Upgrade()); });
}

INSTANTIATE_CONTRACT(TerminalOutput);

}  // namespace
}  // namespace gantry::contract
