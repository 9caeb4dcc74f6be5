// SPDX-License-Identifier: Apache-2.0
//
// What a terminal makes of its user's keys and of its size: signals for what runs in it,
// whoever sends them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/contract/harness/contract_test.h"

namespace gantry::contract {
namespace {

/// Says each signal and how many there were.
constexpr const char* kTellSignals =
    "trap 'i=$((i+1)); echo int-$i' INT; trap 'q=$((q+1)); echo quit-$q' QUIT;"
    "trap 'w=$((w+1)); echo winch-$w' WINCH; echo up; while :; do sleep 1; done";

class Terminals : public ContractTest {
 protected:
  void SetUp() override {
    ContractTest::SetUp();
    ASSERT_EQ(mkfifo(out_.c_str(), 0600), 0);
    ASSERT_EQ(mkfifo(in_.c_str(), 0600), 0);
    writer_.reset(open(in_.c_str(), O_RDWR | O_CLOEXEC));
  }

  void TearDown() override {
    unlink(in_.c_str());
    unlink(out_.c_str());
    ContractTest::TearDown();
  }

  /// Of the fake remote backend the terminal is nobody's controlling terminal.
  Box& InTerminal(const std::string& script) {
    return Running({.args = {"sh", "-c", script},
                    .terminal = true,
                    .in = in_,
                    .out = out_,
                    .spec = {{"annotations", {{"remote.test/foreign-console", "yes"}}}}});
  }

  void Type(const std::string& text) const {
    EXPECT_EQ(write(writer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  const std::string out_ = node().root() + "/" + Id() + ".out";
  const std::string in_ = node().root() + "/" + Id() + ".in";
  UniqueFd writer_;
};

TEST_P(Terminals, TurnKeysAndSizesIntoSignals) {
  e2e::Program reader({"cat", out_});
  const Box& box = InTerminal(kTellSignals);
  ASSERT_TRUE(reader.ReadUntil("up"));
  Type("\x03");
  EXPECT_TRUE(reader.ReadUntil("int-1")) << reader.out();
  Type("\x1c");
  EXPECT_TRUE(reader.ReadUntil("quit-1")) << reader.out();
  EXPECT_OK(box.Resize());
  EXPECT_TRUE(reader.ReadUntil("winch-1")) << reader.out();
}

TEST_P(Terminals, TurnKeysIntoSignalsForTheNextEngineToo) {
  e2e::Program reader({"cat", out_});
  InTerminal(kTellSignals);
  ASSERT_TRUE(reader.ReadUntil("up"));
  Type("\x03");
  EXPECT_TRUE(reader.ReadUntil("int-1")) << reader.out();
  node().KillEngine();
  Type("\x03");
  EXPECT_TRUE(reader.ReadUntil("int-2")) << reader.out();
}

TEST_P(Terminals, PassKeysOnThatMakeNoSignal) {
  e2e::Program reader({"cat", out_});
  InTerminal("stty -isig -icanon -echo; echo up; dd bs=1 count=3 2>/dev/null | od -An -tx1");
  ASSERT_TRUE(reader.ReadUntil("up"));
  Type("\x03\x1c\x1a");
  EXPECT_TRUE(reader.ReadUntil("03 1c 1a")) << reader.out();
}

INSTANTIATE_CONTRACT(Terminals);

}  // namespace
}  // namespace gantry::contract
