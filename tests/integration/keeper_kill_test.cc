// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the process that containerd is connected to (the keeper, or the
// stock shim): containerd takes its containers for dead, so they must be, and
// all of them must be gone. With pods: keeper_kill_pod_test.cc.

#include <signal.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"

namespace gantry::e2e {
namespace {

using ::testing::HasSubstr;

class KeeperKill : public E2eTest {
 protected:
  static void Kill() {
    pid_t pid = node().Keeper().pid;
    if (settings().stock()) {
      const auto shims = Processes([](const HostProcess& process) {
        return process.name == "containerd-shim-runc-v2" &&
               process.command.find(node().address()) != std::string::npos;
      });
      pid = shims.empty() ? 0 : shims.front().pid;
    }
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    ASSERT_TRUE(WaitGone(pid));
  }

  /// Prints `up` and goes on, whatever hangs up.
  static Words Stubborn(const std::string& up) {
    return {"sh", "-c", "trap '' HUP TERM PIPE; echo " + up + "; while :; do sleep 0.1; done"};
  }

  /// They are the clients', and ctr leaves them where it cannot delete a task or process.
  static void RemoveFifos() {
    for (const std::string& folder : ListFolder(node().fifo_dir())) {
      std::filesystem::remove_all(node().fifo_dir() + "/" + folder);
    }
  }

  static Program::Options Terminal() {
    Program::Options options;
    options.terminal = true;
    return options;
  }
};

TEST_F(KeeperKill, EndsAndCleansItsContainers) {
  const std::string id = Id();
  // Nobody is left to remove the fifos of a client that has gone.
  StartDetached(id, {"sleep", "1000"}, {"--null-io"});
  const pid_t pid = FindTask(id).pid;
  Kill();
  EXPECT_TRUE(WaitGone(pid));
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(KeeperKill, LetsNewContainersStart) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"}, {"--null-io"});
  Kill();
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  const Output output = RunContainer({"--rm"}, Id("new"), {"sh", "-c", "exit 5"});
  EXPECT_EQ(output.status, 5) << output.Text();
}

TEST_F(KeeperKill, EndsATerminalAndItsExecs) {
  const std::string id = Id();
  Program init = StartCtr(node(), RunWords({"-t"}, id, Stubborn("init-up")), Terminal());
  ASSERT_TRUE(init.ReadUntil("init-up")) << init.out();
  Program pipes = StartCtr(node(), ExecWords({}, id, Stubborn("pipes-up")), {});
  ASSERT_TRUE(pipes.ReadUntil("pipes-up")) << pipes.err();
  Program terminal = StartCtr(node(), ExecWords({"-t"}, id, Stubborn("terminal-up")), Terminal());
  ASSERT_TRUE(terminal.ReadUntil("terminal-up")) << terminal.out();
  const std::string cgroup = "/" + settings().ns + "/" + id;
  ASSERT_GE(ProcessesInCgroup(cgroup).size(), 3U);
  Kill();
  EXPECT_TRUE(Eventually([&] { return ProcessesInCgroup(cgroup).empty(); }))
      << Describe(ProcessesInCgroup(cgroup));
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  for (Program* client : {&init, &pipes, &terminal}) {
    const int status = client->Wait();
    EXPECT_NE(status, 0) << client->out();
    EXPECT_NE(status, Output::kTimedOut) << client->out();
  }
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  RemoveFifos();
}

TEST_F(KeeperKill, TellsTheExitCodeThatIsOnRecord) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock shim has no record";
  }
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "exit 7"}, {"--null-io"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Events events(node());
  Kill();
  const auto told = events.Until("/tasks/exit", id);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().Field("exit_status"), "7");
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

// Who is to call `delete` is not there: containers go on without anyone until it is.
TEST_F(KeeperKill, WithoutContainerdIsCleanedWhenItComes) {
  if (settings().stock()) {
    GTEST_SKIP() << "of the stock shim's commands, none tells its containerd when that is away";
  }
  const std::string id = Id();
  StartDetached(id, Stubborn("up"), {"--null-io"});
  const pid_t pid = FindTask(id).pid;
  const pid_t engine = node().Engine().pid;
  node().KillContainerd();
  Kill();
  EXPECT_TRUE(WaitGone(engine)) << "it does not outlive its keeper";
  EXPECT_EQ(kill(pid, 0), 0) << "a process outlives its keeper";
  ASSERT_EQ(node().StartContainerd(), "");
  EXPECT_TRUE(WaitGone(pid));
  EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(KeeperKill, LetsTheSameIdStartAgain) {
  const std::string id = Id();
  for (int life = 0; life < 3; ++life) {
    SCOPED_TRACE(life);
    // containerd lists a task no more before it has forgotten it.
    EXPECT_TRUE(Eventually([&] {
      const Output started = RunContainer({"-d", "--null-io"}, id, Stubborn("up"));
      if (started.status != 0) {
        EXPECT_THAT(started.err, HasSubstr("task " + id + ": already exists"));
        Ctr({"containers", "rm", id});
      }
      return started.status == 0;
    }));
    const pid_t pid = FindTask(id).pid;
    ASSERT_GT(pid, 0);
    Kill();
    EXPECT_TRUE(WaitGone(pid));
    EXPECT_TRUE(Eventually([&] { return FindTask(id).pid == 0; }));
    EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  }
}

}  // namespace
}  // namespace gantry::e2e
