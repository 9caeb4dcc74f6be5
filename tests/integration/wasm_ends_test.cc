// SPDX-License-Identifier: Apache-2.0
//
// How guests end that are ended: by a signal, by a trap, by the limit of their memory, and what
// becomes of them when gantry's engine is killed.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmEnds : public WasmTest {
 protected:
  static void Kill(const std::string& id, const std::string& signal) {
    const Output killed = Ctr({"tasks", "kill", "-s", signal, id});
    EXPECT_EQ(killed.status, 0) << killed.Text();
  }
};

TEST_F(WasmEnds, ATrapIs134AndSaysWhere) {
  const Output output = RunGuest({"tool", "trap"});
  EXPECT_EQ(output.status, 134) << output.Text();
  EXPECT_THAT(output.err, HasSubstr("unreachable"));
  EXPECT_THAT(output.err, HasSubstr("backtrace"));
}

TEST_F(WasmEnds, ARecursionWithoutEndIsATrap) {
  const Output output = RunGuest({"recurse"});
  EXPECT_EQ(output.status, 134) << output.Text();
  EXPECT_THAT(output.err, HasSubstr("stack"));
}

/// As the first process of its namespace, where nothing happens to who handles no signal.
TEST_F(WasmEnds, InALoopASignalDoes) {
  for (const auto& [signal, code] : {std::pair("TERM", 143), {"INT", 130}, {"USR1", 138}}) {
    const std::string id = Id(std::string("-") + signal);
    Program program = StartGuest(id, {"tool", "spin"}, "spins\n");
    Kill(id, signal);
    EXPECT_EQ(program.Wait(), code) << program.err();
  }
}

TEST_F(WasmEnds, InACallOfTheHostASignalDoes) {
  for (const auto& [signal, code] : {std::pair("TERM", 143), {"QUIT", 131}, {"HUP", 129}}) {
    const std::string id = Id(std::string("-") + signal);
    Program program = StartGuest(id, {"tool", "sleep", "1000000"}, "sleeps\n");
    Kill(id, signal);
    EXPECT_EQ(program.Wait(), code) << program.err();
  }
}

TEST_F(WasmEnds, ByKillIs137) {
  const std::string id = Id();
  Program program = StartGuest(id, {"tool", "spin"}, "spins\n");
  Kill(id, "KILL");
  EXPECT_EQ(program.Wait(), 137) << program.err();
}

/// What the guest is told: there is no more.
TEST_F(WasmEnds, MoreThanItsAnnotationOfMemoryIsNotThere) {
  const Output output =
      RunGuest({"tool", "grow", "100"}, {"--annotation", "io.gantry.wasm/memory=32Mi"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_LT(std::atoi(output.out.c_str()), 32) << output.Text();
  EXPECT_GT(std::atoi(output.out.c_str()), 16) << output.Text();
}

/// The linear memory may be as large as the limit, which the engine's own pages are part of.
TEST_F(WasmEnds, MoreThanItsCgroupHasIs137) {
  const Output output =
      RunGuest({"tool", "grow", "100"},
               {"--memory-limit", "33554432", "--annotation", "io.gantry.wasm/memory=1Gi"});
  EXPECT_EQ(output.status, 137) << output.Text();
}

TEST_F(WasmEnds, NothingOfItWhenTheEngineIsKilled) {
  const std::string id = Id();
  Program::Options options;
  options.input = true;
  Program program = StartCtr(node(), RunWords(WithGuests({"--rm"}), id, Tool({"cat"})), options);
  program.Write("before\n");
  ASSERT_TRUE(program.ReadUntil("before\n")) << program.err();
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  program.Write("after\n");
  EXPECT_TRUE(program.ReadUntil("after\n")) << program.err();
  Kill(id, "TERM");
  EXPECT_EQ(program.Wait(), 143) << program.err();
}

}  // namespace
}  // namespace gantry::e2e
