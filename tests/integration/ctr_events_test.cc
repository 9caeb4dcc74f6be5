// SPDX-License-Identifier: Apache-2.0
//
// The events that containerd's subscribers get, and their order.

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"
#include "tests/harness/take_memory.h"

namespace gantry::e2e {
namespace {

using ::testing::ElementsAre;

class CtrEvents : public E2eTest {};

TEST_F(CtrEvents, OfARunComeInOrder) {
  Events events(node());
  const std::string id = Id();
  ASSERT_EQ(RunContainer({"--rm"}, id, {"sh", "-c", "exit 7"}).status, 7);
  const auto seen = events.Until("/tasks/delete", id);
  EXPECT_THAT(Events::Topics(seen), ElementsAre("create", "start", "exit", "delete"));
}

TEST_F(CtrEvents, CarryPidStatusAndBundle) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "exit 7"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Ctr({"tasks", "rm", id});
  Ctr({"containers", "rm", id});
  const auto seen = events.Until("/tasks/delete", id);
  ASSERT_EQ(seen.size(), 4U);
  const std::string pid = seen[0].Field("pid");
  EXPECT_GT(std::stoi("0" + pid), 0);
  EXPECT_EQ(seen[0].Field("bundle"), node().bundles() + "/" + id);
  EXPECT_EQ(seen[1].Field("pid"), pid);
  EXPECT_EQ(seen[2].Field("id"), id);
  EXPECT_EQ(seen[2].Field("pid"), pid);
  EXPECT_EQ(seen[2].Field("exit_status"), "7");
  EXPECT_NE(seen[2].Field("exited_at"), "");
  EXPECT_EQ(seen[3].Field("pid"), pid);
  EXPECT_EQ(seen[3].Field("exit_status"), "7");
}

TEST_F(CtrEvents, OfAnExecComeInOrder) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output exec = node().Ctr({"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id",
                                  "one", id, "sh", "-c", "exit 3"});
  ASSERT_EQ(exec.status, 3) << exec.Text();
  auto seen = events.Until("/tasks/exit", id, "one");
  EXPECT_THAT(Events::Topics(seen),
              ElementsAre("create", "start", "exec-added", "exec-started", "exit(one)"));
  EXPECT_EQ(seen.back().Field("exit_status"), "3");
  Remove(id);
}

TEST_F(CtrEvents, OfExecsEndBeforeTheInits) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  std::vector<Program> execs;
  for (int i = 0; i < 5; ++i) {
    execs.push_back(
        StartCtr(node(), ExecWords({}, id, {"sh", "-c", "echo up; exec sleep 1000"}), {}));
    ASSERT_TRUE(execs.back().ReadUntil("up\n"));
  }
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  const auto seen = events.Until("/tasks/exit", id, id);
  EXPECT_EQ(
      std::ranges::count_if(seen, [](const Event& event) { return event.topic == "/tasks/exit"; }),
      6);
  EXPECT_EQ(seen.back().Field("id"), id) << "not the last";
  for (Program& exec : execs) {
    EXPECT_EQ(exec.Wait(), 137);
  }
  Remove(id);
}

TEST_F(CtrEvents, TellOfPauseAndResume) {
  Events events(node());
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  ASSERT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  Remove(id);
  const auto seen = events.Until("/tasks/delete", id);
  EXPECT_THAT(Events::Topics(seen),
              ElementsAre("create", "start", "paused", "resumed", "exit", "delete"));
}

TEST_F(CtrEvents, TellOfMemoryBeforeTheEnd) {
  Events events(node());
  const std::string id = Id();
  RunContainer({"--rm", "--memory-limit", "67108864"}, id, TakeMemory(100'000'000));
  const auto topics = Events::Topics(events.Until("/tasks/exit", id, id));
  const auto oom = std::ranges::find(topics, "oom");
  EXPECT_NE(oom, topics.end());
  EXPECT_LT(oom, std::ranges::find(topics, "exit"));
}

TEST_F(CtrEvents, OfManyContainersStayInOrderForEach) {
  Events events(node());
  constexpr int kCount = 12;
  std::vector<Program> running;
  for (int i = 0; i < kCount; ++i) {
    running.push_back(
        StartCtr(node(), RunWords({"--rm"}, Id("-" + std::to_string(i)), {"true"}), {}));
  }
  for (Program& program : running) {
    EXPECT_EQ(program.Wait(), 0) << program.err();
  }
  for (int i = 0; i < kCount; ++i) {
    const auto seen = events.Until("/tasks/delete", Id("-" + std::to_string(i)));
    EXPECT_THAT(Events::Topics(seen), ElementsAre("create", "start", "exit", "delete"));
  }
}

}  // namespace
}  // namespace gantry::e2e
