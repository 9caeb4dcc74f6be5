// SPDX-License-Identifier: Apache-2.0
//
// Terminals, from a real one: size, echo, control characters, the end.

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

// Ends when the terminal has the size; the first resize comes after the start.
std::string UntilSize(const std::string& size) {
  return "until [ \"$(stty size)\" = '" + size + "' ]; do sleep 0.05; done; echo is-$((40+2))";
}

class CtrTerminal : public E2eTest {
 protected:
  Program RunIn(const Program::Options& options, const Words& command) {
    return StartCtr(node(), RunWords({"--rm", "-t"}, Id(), command), options);
  }

  static Program::Options Terminal() {
    Program::Options options;
    options.terminal = true;
    return options;
  }
};

TEST_F(CtrTerminal, IsATerminalInside) {
  Program program = RunIn(Terminal(), {"sh", "-c", "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && tty"});
  EXPECT_TRUE(program.ReadUntil("/dev/pts/0")) << program.out();
  EXPECT_EQ(program.Wait(), 0);
}

TEST_F(CtrTerminal, EchoesAndRunsWhatIsTyped) {
  Program program = RunIn(Terminal(), {"sh"});
  program.Write("echo $((6*7))-answer\n");
  EXPECT_TRUE(program.ReadUntil("echo $((6*7))-answer")) << program.out();
  EXPECT_TRUE(program.ReadUntil("42-answer")) << program.out();
  program.Write("exit 3\n");
  EXPECT_EQ(program.Wait(), 3) << program.out();
}

TEST_F(CtrTerminal, StartsWithTheClientsSize) {
  Program::Options options = Terminal();
  options.rows = 33;
  options.columns = 101;
  Program program = RunIn(options, {"sh", "-c", UntilSize("33 101")});
  EXPECT_TRUE(program.ReadUntil("is-42")) << program.out();
  EXPECT_EQ(program.Wait(), 0);
}

TEST_F(CtrTerminal, FollowsTheClientsSize) {
  Program program = RunIn(Terminal(), {"sh", "-c", UntilSize("24 80") + ";" + UntilSize("50 132")});
  ASSERT_TRUE(program.ReadUntil("is-42")) << program.out();
  program.Resize(50, 132);
  EXPECT_TRUE(program.ReadUntil("is-42")) << program.out();
  EXPECT_EQ(program.Wait(), 0);
}

TEST_F(CtrTerminal, TurnsControlCIntoASignal) {
  Program program =
      RunIn(Terminal(),
            {"sh", "-c", "trap 'exit 8' INT; echo is-$((40+2)); while :; do sleep 0.1; done"});
  ASSERT_TRUE(program.ReadUntil("is-42")) << program.out();
  program.Write("\x03");
  EXPECT_EQ(program.Wait(), 8) << program.out();
}

TEST_F(CtrTerminal, TurnsControlDIntoTheEnd) {
  Program program = RunIn(Terminal(), {"sh", "-c", "echo is-$((40+2)); cat; exit 4"});
  ASSERT_TRUE(program.ReadUntil("is-42")) << program.out();
  program.Write("text\n\x04");
  EXPECT_EQ(program.Wait(), 4) << program.out();
}

TEST_F(CtrTerminal, ShowsMuchOutputToItsEnd) {
  Program program = RunIn(Terminal(), {"seq", "1", "200000"});
  EXPECT_EQ(program.Wait(), 0);
  const std::string shown = WithoutReturns(program.out());
  EXPECT_TRUE(shown.ends_with(RunProgram({"seq", "1", "200000"}).out)) << shown.size();
}

TEST_F(CtrTerminal, OfAnExecWorksTheSame) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  Program::Options options = Terminal();
  options.rows = 30;
  Program program = StartCtr(
      node(), ExecWords({"-t"}, id, {"sh", "-c", UntilSize("30 80") + "; read x; echo got-$x"}),
      options);
  ASSERT_TRUE(program.ReadUntil("is-42")) << program.out();
  program.Write("word\n");
  EXPECT_TRUE(program.ReadUntil("got-word")) << program.out();
  EXPECT_EQ(program.Wait(), 0);
  Remove(id);
}

TEST_F(CtrTerminal, OutlivesItsClient) {
  const std::string id = Id();
  Program program = StartCtr(node(), RunWords({"-t"}, id, {"sh"}), Terminal());
  program.Write("echo first-$((1+1))\n");
  ASSERT_TRUE(program.ReadUntil("first-2")) << program.out();
  program.Kill(9);
  program.Wait();
  // It may have been killed before it was told that the container runs.
  ASSERT_TRUE(WaitForState(id, "RUNNING"));
  Program again = StartCtr(node(), {"tasks", "attach", id}, Terminal());
  again.Write("echo second-$((1+1))\n");
  EXPECT_TRUE(again.ReadUntil("second-2")) << again.out();
  again.Write("exit 5\n");
  EXPECT_EQ(again.Wait(), 5) << again.out();
  Remove(id);
}

TEST_F(CtrTerminal, ManyAtOnceStayApart) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  std::vector<Program> programs;
  for (int i = 0; i < 10; ++i) {
    programs.push_back(StartCtr(node(), ExecWords({"-t"}, id, {"sh"}), Terminal()));
  }
  for (int i = 0; i < 10; ++i) {
    programs[static_cast<size_t>(i)].Write("echo n$((100+" + std::to_string(i) + "))\nexit " +
                                           std::to_string(i) + "\n");
  }
  for (int i = 0; i < 10; ++i) {
    Program& program = programs[static_cast<size_t>(i)];
    EXPECT_EQ(program.Wait(), i) << program.out();
    EXPECT_NE(program.out().find("n" + std::to_string(100 + i)), std::string::npos);
  }
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
