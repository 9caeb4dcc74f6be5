// SPDX-License-Identifier: Apache-2.0
//
// The other task commands of ctr: ls, ps, pause, resume, metrics, update.

#include <algorithm>

#include "tests/harness/e2e_test.h"
#include "tests/harness/take_memory.h"

namespace gantry::e2e {
namespace {

class CtrTask : public E2eTest {};

TEST_F(CtrTask, ListsEachTaskOnce) {
  const std::string first = Id("a");
  const std::string second = Id("b");
  StartDetached(first, {"sleep", "1000"});
  StartDetached(second, {"sleep", "1000"});
  // In no particular order.
  const std::string listed = Ctr({"tasks", "ls", "-q"}).out;
  EXPECT_TRUE(listed == first + "\n" + second + "\n" || listed == second + "\n" + first + "\n")
      << listed;
  EXPECT_NE(FindTask(first).pid, FindTask(second).pid);
  Remove(first);
  Remove(second);
}

TEST_F(CtrTask, ShowsTheProcessesOfAContainer) {
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "sleep 1000 & sleep 1000 & wait"});
  // The shell may not have started its children yet.
  EXPECT_TRUE(Eventually([&] {
    const std::string out = Ctr({"tasks", "ps", id}).out;
    return std::ranges::count(out, '\n') == 4;
  })) << Ctr({"tasks", "ps", id}).Text();
  const Output listed = Ctr({"tasks", "ps", id});
  EXPECT_NE(listed.out.find("\n" + std::to_string(FindTask(id).pid)), std::string::npos)
      << listed.Text();
  Remove(id);
}

TEST_F(CtrTask, NamesTheExecAmongTheProcesses) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Words words{"tasks", "exec", "--fifo-dir", node().fifo_dir(),   "--exec-id", "visitor",
                    id,      "sh",   "-c",         "echo up; read line"};
  Program::Options options;
  options.input = true;
  Program program = StartCtr(node(), words, options);
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  // It may speak before its start has been answered.
  EXPECT_TRUE(Eventually([&] { return Ctr({"tasks", "ps", id}).out.contains("visitor"); }))
      << Ctr({"tasks", "ps", id}).Text();
  program.CloseInput();
  program.Wait();
  Remove(id);
}

TEST_F(CtrTask, StandsStillWhilePaused) {
  const std::string id = Id();
  Program::Options options;
  options.input = true;
  Program program = StartCtr(node(), RunWords({"--rm"}, id, {"cat"}), options);
  program.Write("before\n");
  ASSERT_TRUE(program.ReadUntil("before\n")) << program.err();
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  EXPECT_EQ(FindTask(id).state, "PAUSED");
  program.Write("during\n");
  EXPECT_FALSE(program.ReadUntil("during\n", std::chrono::milliseconds(200)));
  ASSERT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_TRUE(program.ReadUntil("during\n")) << program.err();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
}

TEST_F(CtrTask, RefusesToResumeARunningContainer) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  EXPECT_NE(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrTask, RefusesToPauseAnEndedContainer) {
  const std::string id = Id();
  StartDetached(id, {"true"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  EXPECT_NE(Ctr({"tasks", "pause", id}).status, 0);
  Remove(id);
}

TEST_F(CtrTask, MeasuresMemoryCpuAndProcesses) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output metrics = Ctr({"tasks", "metrics", "--format", "json", id});
  ASSERT_EQ(metrics.status, 0) << metrics.Text();
  std::string out = metrics.out;
  std::erase_if(out, [](char c) { return c == ' ' || c == '\n'; });
  for (const char* part : {"\"memory\":{", "\"cpu\":{", "\"pids\":{\"current\":1"}) {
    EXPECT_NE(out.find(part), std::string::npos) << metrics.Text();
  }
  Remove(id);
}

TEST_F(CtrTask, ShowsItsMemoryLimitInMetrics) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"}, {"--memory-limit", "67108864"});
  const Output metrics = Ctr({"tasks", "metrics", "--format", "json", id});
  EXPECT_NE(metrics.out.find("67108864"), std::string::npos) << metrics.Text();
  Remove(id);
}

TEST_F(CtrTask, IsEndedBeyondItsMemoryLimit) {
  const Output output =
      RunContainer({"--rm", "--memory-limit", "67108864"}, Id(), TakeMemory(100'000'000));
  EXPECT_EQ(output.status, 137) << output.Text();
}

}  // namespace
}  // namespace gantry::e2e
