// SPDX-License-Identifier: Apache-2.0
//
// What a backend finds again after kill -9 of the engine is what was there: nothing is started
// twice, given up or only half taken up.
#include <signal.h>

#include <map>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/fifo_reader.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

class Recovery : public ContractTest {
 protected:
  static pb::Status StatusOf(const Box& box, const std::string& exec = "") {
    const auto state = box.State(exec);
    EXPECT_OK(state);
    return state ? state->status() : pb::UNKNOWN;
  }

  /// The engine's record of a container, file by file.
  static std::map<std::string, std::string> RecordOf(const Box& box) {
    std::map<std::string, std::string> record;
    for (const std::string& name : e2e::ListFolder(box.bundle())) {
      if (name.starts_with("gantry.record")) {
        record[box.bundle() + "/" + name] = e2e::ReadText(box.bundle() + "/" + name);
      }
    }
    return record;
  }
};

TEST_P(Recovery, OfAContainerThatWaitsForItsStart) {
  Box& box = Created({.args = {"sh", "-c", "exit 4"}});
  node().KillEngine();
  EXPECT_EQ(StatusOf(box), pb::CREATED);
  ASSERT_OK(box.Start());
  EXPECT_EQ(Got(box.Wait()).exit_status(), 4U);
}

TEST_P(Recovery, OfAContainerThatRuns) {
  Box& box = Running();
  const uint32_t pid = Got(box.State()).pid();
  node().KillEngine();
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
  EXPECT_EQ(Got(box.State()).pid(), pid);
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "exit 5"}));
  ASSERT_OK(box.Start("x1"));
  EXPECT_EQ(Got(box.Wait("x1")).exit_status(), 5U);
  EXPECT_OK(box.Delete("x1"));
  ASSERT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
}

TEST_P(Recovery, OfAnExecThatRuns) {
  Box& box = Running();
  FifoReader out(node().root() + "/" + Id() + ".exec");
  ASSERT_OK(box.Exec(
      "x1", {"sh", "-c", "trap 'echo asked; exit 6' TERM; echo up; while :; do sleep 1; done"},
      false, out.path()));
  ASSERT_OK(box.Start("x1"));
  ASSERT_TRUE(out.ReadUntil("up\n"));
  node().KillEngine();
  EXPECT_EQ(StatusOf(box, "x1"), pb::RUNNING);
  ASSERT_OK(box.Kill(SIGTERM, "x1"));
  EXPECT_TRUE(out.ReadUntil("asked\n"));
  EXPECT_EQ(Got(box.Wait("x1")).exit_status(), 6U);
  EXPECT_OK(box.Delete("x1"));
}

TEST_P(Recovery, OfAStartThatIsNotOnRecord) {
  Box& box = Created();
  const std::map<std::string, std::string> before = RecordOf(box);
  ASSERT_FALSE(before.empty());
  ASSERT_OK(box.Start());
  // As where the disk was full when the start was to be recorded.
  ASSERT_TRUE(Signal(node().Engine(), SIGSTOP));
  for (const auto& [path, text] : before) {
    e2e::WriteText(path, text);
  }
  node().KillEngine();
  if (!TheSetup().anybodys && !IsSupported(backend(), "starts without what was saved")) {
    EXPECT_EQ(StatusOf(box), pb::CREATED) << "then the row can go";
    return;
  }
  EXPECT_EQ(StatusOf(box), pb::RUNNING) << "it was started before the engine was killed";
  ASSERT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
}

INSTANTIATE_CONTRACT(Recovery);

}  // namespace
}  // namespace gantry::contract
