// SPDX-License-Identifier: Apache-2.0
//
// The units' restart and reload while the node works: processes are started in
// containers, states are asked for, output streams. Nothing of it fails or is lost.
#include "tests/node/harness/load.h"

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class UnitsUnderLoad : public NodeTest {
 protected:
  // Each of them is its own kind of replacement.
  static std::vector<Words> Replacements() {
    return {{"restart", kEngineUnit},
            {"reload", kEngineUnit},
            {"reload", kKeeperUnit},
            {"restart", kEngineUnit},
            {"reload", kKeeperUnit}};
  }
};

TEST_F(UnitsUnderLoad, NoCallFailsAndNothingIsLostWhileTheyAreReplaced) {
  const std::string id = Id();
  const std::string piped = Id("piped");
  const std::string terminal = Id("terminal");
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  e2e::Program pipe = Counter(piped, false);
  e2e::Program tty = Counter(terminal, true);
  ASSERT_TRUE(pipe.ReadUntil("line 3.")) << pipe.err();
  ASSERT_TRUE(tty.ReadUntil("line 3.")) << tty.out();
  const pid_t pids[] = {FindTask(id).pid, FindTask(piped).pid, FindTask(terminal).pid};
  const pid_t keeper = Keeper();
  const std::string restarts = Property(kKeeperUnit, "NRestarts");

  Load load(id, pids[0], 2);
  for (const Words& replacement : Replacements()) {
    EXPECT_TRUE(load.Works());
    const pid_t engine = Engine();
    const e2e::Output replaced = Systemctl(replacement);
    EXPECT_EQ(replaced.status, 0) << testing::PrintToString(replacement) << replaced.Text();
    EXPECT_EQ(Engine() != engine, replacement.back() == kEngineUnit);
  }
  EXPECT_TRUE(load.Works());
  EXPECT_THAT(load.End(), testing::IsEmpty());

  EXPECT_EQ(FindTask(id).pid, pids[0]);
  EXPECT_EQ(FindTask(piped).pid, pids[1]);
  EXPECT_EQ(FindTask(terminal).pid, pids[2]);
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(Property(kKeeperUnit, "NRestarts"), restarts);
  for (auto* const counter : {&pipe, &tty}) {
    const std::string& counts = counter == &pipe ? piped : terminal;
    // How it ends itself says nothing: the container may have ended before it.
    Exec(counts, {"touch", "/stop"});
    EXPECT_EQ(counter->Wait(), 42) << counter->err();
    EXPECT_EQ(Gap(counter->out()), "");
    EXPECT_TRUE(e2e::Eventually([&] { return Leftovers(counts).empty(); })) << Leftovers(counts);
  }
}

}  // namespace
}  // namespace gantry::node
