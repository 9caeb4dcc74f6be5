// SPDX-License-Identifier: Apache-2.0
//
// `ctr task exec`: further processes in a running container.

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

class CtrExec : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    id_ = Id();
    StartDetached(id_, {"sleep", "1000"});
  }

  void TearDown() override {
    if (!id_.empty() && !HasFailure()) {
      Remove(id_);
    }
    E2eTest::TearDown();
  }

  std::string id_;
};

TEST_F(CtrExec, ShowsOutput) {
  const Output output = Exec(id_, {"sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
}

TEST_F(CtrExec, PassesTheExitCodeOn) {
  const Output output = Exec(id_, {"sh", "-c", "exit 5"});
  EXPECT_EQ(output.status, 5) << output.Text();
}

TEST_F(CtrExec, ReportsASignal) {
  const Output output = Exec(id_, {"sh", "-c", "kill -9 $$"});
  EXPECT_EQ(output.status, 137) << output.Text();
}

TEST_F(CtrExec, RunsInsideTheContainer) {
  const Output output = Exec(id_, {"sh", "-c", "tr '\\0' ' ' </proc/1/cmdline"});
  EXPECT_EQ(output.out, "sleep 1000 ") << output.Text();
}

TEST_F(CtrExec, PassesStdinAndItsEnd) {
  const Output output = Exec(id_, {"cat"}, {}, "a line\nand a half");
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "a line\nand a half");
}

TEST_F(CtrExec, AnswersWhileItRuns) {
  Program::Options options;
  options.input = true;
  Program program = StartCtr(node(), ExecWords({}, id_, {"cat"}), options);
  for (const char* line : {"first", "second", "third"}) {
    program.Write(std::string(line) + "\n");
    ASSERT_TRUE(program.ReadUntil(std::string(line) + "\n")) << program.err();
  }
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
}

TEST_F(CtrExec, NamesTheMissingBinary) {
  const Output output = Exec(id_, {"/no/such/program"});
  EXPECT_NE(output.status, 0);
  EXPECT_NE(output.err.find("/no/such/program"), std::string::npos) << output.Text();
  EXPECT_EQ(FindTask(id_).state, "RUNNING");
}

TEST_F(CtrExec, RunsAfterAFailedOne) {
  Exec(id_, {"/no/such/program"});
  const Output output = Exec(id_, {"echo", "still here"});
  EXPECT_EQ(output.out, "still here\n") << output.Text();
}

TEST_F(CtrExec, GetsItsWorkingDirectory) {
  const Output output = Exec(id_, {"pwd"}, {"--cwd", "/var"});
  EXPECT_EQ(output.out, "/var\n") << output.Text();
}

TEST_F(CtrExec, GetsItsUser) {
  const Output output = Exec(id_, {"id", "-u"}, {"--user", "65534:65534"});
  EXPECT_EQ(output.out, "65534\n") << output.Text();
}

TEST_F(CtrExec, RunsTwentyAtOnce) {
  std::vector<Program> running;
  Program::Options options;
  options.input = true;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(i);
    running.push_back(StartCtr(
        node(),
        ExecWords({}, id_, {"sh", "-c", "echo up " + number + "; read line; exit " + number}),
        options));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(running[static_cast<size_t>(i)].ReadUntil("up " + std::to_string(i) + "\n"));
  }
  for (int i = 0; i < 20; ++i) {
    running[static_cast<size_t>(i)].Write("go\n");
    EXPECT_EQ(running[static_cast<size_t>(i)].Wait(), i);
  }
}

TEST_F(CtrExec, UsesAnExecIdAgainAfterItsEnd) {
  for (int round = 0; round < 3; ++round) {
    const Output output = node().Ctr({"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id",
                                      "same", id_, "echo", "again"});
    EXPECT_EQ(output.status, 0) << output.Text();
    EXPECT_EQ(output.out, "again\n");
  }
}

TEST_F(CtrExec, IsRefusedWithAnExecIdInUse) {
  const Words words{"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id", "same", id_};
  Words first = words;
  first.insert(first.end(), {"sh", "-c", "echo up; read line"});
  Program::Options options;
  options.input = true;
  Program program = StartCtr(node(), first, options);
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  Words second = words;
  second.push_back("true");
  const Output refused = node().Ctr(second);
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("exists"), std::string::npos) << refused.Text();
  program.Write("go\n");
  EXPECT_EQ(program.Wait(), 0) << program.err();
}

TEST_F(CtrExec, IsRefusedAfterTheContainersEnd) {
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id_}).status, 0);
  ASSERT_TRUE(WaitForState(id_, "STOPPED"));
  const Output output = Exec(id_, {"true"});
  EXPECT_NE(output.status, 0) << output.Text();
}

TEST_F(CtrExec, EndsWithTheContainer) {
  Program program = StartCtr(node(), ExecWords({}, id_, {"sh", "-c", "echo up; sleep 1000"}), {});
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id_}).status, 0);
  EXPECT_EQ(program.Wait(), 137) << program.err();
}

TEST_F(CtrExec, LeavesItsDetachedChildren) {
  Output output = Exec(id_, {"sh", "-c", "sleep 2000 >/dev/null 2>&1 </dev/null & echo left"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "left\n");
  output = Exec(id_, {"pidof", "sleep"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_NE(output.out.find(' '), std::string::npos) << "two sleepers: " << output.out;
}

TEST_F(CtrExec, EndsThoughAChildHoldsTheOutput) {
  const Output output = Exec(id_, {"sh", "-c", "echo out; echo err >&2; sleep 2000 & exit 3"});
  EXPECT_EQ(output.status, 3) << output.Text();
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
}

}  // namespace
}  // namespace gantry::e2e
