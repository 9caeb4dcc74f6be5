// SPDX-License-Identifier: Apache-2.0
//
// What a terminal shows comes to its client whole, to the last byte before its end.
// GANTRY_CONTRACT_TERMINALS: how many execs; GANTRY_CONTRACT_NUMBERS: how much each says.
#include <cstdlib>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/fifo_reader.h"

namespace gantry::contract {
namespace {

constexpr int kContainers = 20;

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
  std::vector<std::string> Say() const { return {"seq", "-s", " ", std::to_string(last_)}; }

  const int last_ = Setting("GANTRY_CONTRACT_NUMBERS", 20'000);
  const std::string whole_ = Numbers(last_);
  const std::string path_ = node().root() + "/" + Id() + ".out";
};

TEST_P(TerminalOutput, OfExecsIsWhole) {
  const Box& box = Running();
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
  for (int i = 0; i < kContainers; ++i) {
    FifoReader out(path_);
    Box& box = Running({.args = Say(), .terminal = true, .out = path_}, std::to_string(i));
    ASSERT_TRUE(out.ReadToEnd());
    EXPECT_TRUE(out.text() == whole_)
        << "container " << i << ": " << out.text().size() << " bytes instead of " << whole_.size();
    Finish(box);
  }
}

INSTANTIATE_CONTRACT(TerminalOutput);

}  // namespace
}  // namespace gantry::contract
