// SPDX-License-Identifier: Apache-2.0
//
// Processes with namespaces of their own: who hears of them, and when.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>

#include "core/os/process.h"
#include "tests/unit/keeper/node.h"
#include "tests/unit/os/spawned.h"

namespace gantry::keeper {
namespace {

constexpr uint32_t kSpaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;

class SpawnerTest : public KeeperTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0 || !mount::NewUserNamespace({{0, 0, 1}}, {{0, 0, 1}})) {
      GTEST_SKIP() << "no user namespaces here";
    }
    StartKeeper();
    Announce("c1");
  }

  static link::Spawn Script(const std::string& script, const std::string& name = "") {
    link::Spawn spawn;
    spawn.path = "/bin/sh";
    spawn.argv = {"sh", "-c", script};
    spawn.env = {"PATH=/usr/bin:/bin"};
    spawn.name = name;
    spawn.new_namespaces = kSpaces;
    spawn.uid_map = {{.inside = 0, .outside = 100000, .length = 65536}};
    spawn.gid_map = spawn.uid_map;
    spawn.uid = 0;
    spawn.gid = 0;
    return spawn;
  }

  link::Spawned Ask(FakeEngine& engine, const link::Spawn& spawn, std::vector<UniqueFd> fds = {}) {
    const size_t before = engine.Count<link::Spawned>();
    EXPECT_TRUE(engine.channel->Send(spawn, std::move(fds)));
    EXPECT_TRUE(Until([&] { return engine.Count<link::Spawned>() > before; }));
    return engine.All<link::Spawned>().back();
  }

  /// Asks for a child in the frozen cgroup, and waits until the keeper has begun with it.
  void AskFrozen(FakeEngine& engine, const os::TestCgroup& group) {
    link::Spawn spawn = Script("sleep 60", "late");
    spawn.fd_targets = {-1};
    spawn.cgroup_fd = 0;
    std::vector<UniqueFd> fds;
    fds.push_back(os::OpenDirectory(group.path).value());
    ASSERT_TRUE(engine.channel->Send(spawn, std::move(fds)));
    ASSERT_TRUE(Until([&] { return !Members(group).empty(); }));
    EXPECT_EQ(Status().processes_watched, 0U);
  }

  static std::string Members(const os::TestCgroup& group) {
    return ReadFile(group.path + "/cgroup.procs", 4096).value_or("");
  }
};

TEST_F(SpawnerTest, AProcessWithItsOwnNamespacesIsReportedOnce) {
  FakeEngine& engine = ReadyEngine();
  const link::Spawned child = Ask(engine, Script("test $$ = 1 && test $(id -u) = 0 && exit 7"));
  ASSERT_EQ(child.code, 0) << child.message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  Settle();
  ASSERT_EQ(engine.Count<link::Exit>(), 1U);
  for (const link::Message& message : engine.got) {
    EXPECT_EQ(message.fds.size(), message.type == link::Type::kSpawned ? 1U : 0U) << "its pidfd";
  }
  EXPECT_EQ(engine.All<link::Exit>().front().pid, child.pid);
  EXPECT_EQ(engine.All<link::Exit>().front().start_time, child.start_time);
  EXPECT_EQ(WEXITSTATUS(engine.All<link::Exit>().front().wait_status), 7);
  EXPECT_EQ(Status().processes_watched, 0U);
}

TEST_F(SpawnerTest, AProcessWithItsOwnNamespacesIsFoundByItsNameAfterARestart) {
  const link::Spawned child = Ask(ReadyEngine(), Script("exec sleep 60", "sentry"));
  ASSERT_EQ(child.code, 0) << child.message;
  engines[0]->Crash();
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::NamedSpawn>(), 1U);
  EXPECT_EQ(second.All<link::NamedSpawn>().front().name, "sentry");
  EXPECT_EQ(second.All<link::NamedSpawn>().front().pid, child.pid);
  ASSERT_EQ(second.Count<link::Watched>(), 1U);
  EXPECT_EQ(second.All<link::Watched>().front().processes.size(), 1U);
  ASSERT_EQ(kill(child.pid, SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return second.Count<link::Exit>() == 1; }));
  EXPECT_EQ(WTERMSIG(second.All<link::Exit>().front().wait_status), SIGKILL);
}

TEST_F(SpawnerTest, AProcessIsConfinedAsAsked) {
  FakeEngine& engine = ReadyEngine();
  EXPECT_TRUE(engine.All<link::Welcome>().front().confines);
  link::Spawn spawn = Script(
      "grep -qE 'Seccomp:.2' /proc/self/status && grep -qE 'CapBnd:.0000000000000020' "
      "/proc/self/status && ! grep -qE ' (shared|master):' /proc/self/mountinfo && exit 42");
  spawn.no_new_privs = true;
  spawn.seccomp = std::string("\6\0\0\0\0\0\xff\x7f", 8);  // Answers "allowed".
  spawn.capabilities = uint64_t{1} << CAP_KILL;
  spawn.propagation = MS_PRIVATE;
  ASSERT_EQ(Ask(engine, spawn).code, 0) << engine.All<link::Spawned>().back().message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  EXPECT_EQ(WEXITSTATUS(engine.All<link::Exit>().front().wait_status), 42);
  spawn.path = "/bin/busybox";
  spawn.argv = {"busybox", "test", "!", "-e", "/bin"};
  spawn.empty_root = true;
  ASSERT_EQ(Ask(engine, spawn).code, 0) << engine.All<link::Spawned>().back().message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 2; }));
  EXPECT_EQ(engine.All<link::Exit>().back().wait_status, 0);
}

TEST_F(SpawnerTest, AProcessIgnoresWhatItIsAskedTo) {
  FakeEngine& engine = ReadyEngine();
  link::Spawn spawn = Script("grep -qE 'SigIgn:.0000000000001000' /proc/self/status && exit 42");
  spawn.ignore_sigpipe = true;
  ASSERT_EQ(Ask(engine, spawn).code, 0) << engine.All<link::Spawned>().back().message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  EXPECT_EQ(WEXITSTATUS(engine.All<link::Exit>().front().wait_status), 42);
}

TEST_F(SpawnerTest, AFilterThatIsNoProgramIsRefused) {
  FakeEngine& engine = ReadyEngine();
  link::Spawn spawn = Script("exit 0");
  spawn.no_new_privs = true;
  spawn.seccomp = "seven b";
  const link::Spawned refused = Ask(engine, spawn);
  EXPECT_EQ(refused.code, static_cast<int>(Code::kInvalidArgument));
  EXPECT_EQ(refused.message, "spawn '/bin/sh': a filter of 7 bytes is no program");
}

TEST_F(SpawnerTest, AProcessBornInAJoinedPidNamespaceIsWatchedAndNamed) {
  FakeEngine& engine = ReadyEngine();
  const link::Spawned init = Ask(engine, Script("exec sleep 60", "init"));
  ASSERT_EQ(init.code, 0) << init.message;
  link::Spawn exec = Script("test $$ = 2 && exit 7", "exec");
  exec.new_namespaces = 0;
  exec.uid_map.clear();
  exec.gid_map.clear();
  const std::string space = "/proc/" + std::to_string(init.pid) + "/ns/";
  std::vector<UniqueFd> fds;
  for (const auto& [name, kind] :
       {std::pair("user", CLONE_NEWUSER), std::pair("pid", CLONE_NEWPID)}) {
    exec.join.push_back(
        {.fd_index = static_cast<uint32_t>(fds.size()), .kind = static_cast<uint32_t>(kind)});
    exec.fd_targets.push_back(-1);
    fds.emplace_back(open((space + name).c_str(), O_RDONLY | O_CLOEXEC));
  }
  const link::Spawned child = Ask(engine, exec, std::move(fds));
  ASSERT_EQ(child.code, 0) << child.message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  EXPECT_EQ(engine.All<link::Exit>().front().pid, child.pid);
  EXPECT_EQ(WEXITSTATUS(engine.All<link::Exit>().front().wait_status), 7);
  engine.Crash();
  EXPECT_EQ(ReadyEngine(1).Count<link::NamedSpawn>(), 2U);
}

TEST_F(SpawnerTest, AFailedStepLeavesNoProcess) {
  FakeEngine& engine = ReadyEngine();
  link::Spawn program = Script("");
  program.path = "/no/such/program";
  const link::Spawned absent = Ask(engine, program);
  EXPECT_EQ(absent.sys_errno, ENOENT);
  EXPECT_EQ(absent.message, "open '/no/such/program': ENOENT");
  link::Spawn map = Script("exit 0");
  map.gid_map = {{.inside = 0, .outside = 1, .length = 0}};
  const link::Spawned refused = Ask(engine, map);
  EXPECT_EQ(refused.code, static_cast<int>(Code::kInvalidArgument));
  EXPECT_THAT(refused.message, testing::StartsWith("write gid_map of process "));
  Settle();
  EXPECT_EQ(engine.Count<link::Exit>(), 0U);
  EXPECT_EQ(Status().processes_watched, 0U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0) << "the engine alone";
}

TEST_F(SpawnerTest, AnswersComeBeforeExits) {
  FakeEngine& engine = ReadyEngine();
  for (uint64_t tag = 1; tag <= 50; ++tag) {
    link::Spawn spawn = Script("exit 0");
    spawn.tag = tag;
    spawn.path = tag % 2 == 0 ? "/bin/true" : "/no/such/program";
    ASSERT_TRUE(engine.channel->Send(spawn));
  }
  ASSERT_TRUE(Until(
      [&] { return engine.Count<link::Exit>() == 25 && engine.Count<link::Spawned>() == 50; }));
  std::set<int32_t> running;
  for (const link::Message& message : engine.got) {
    if (message.type == link::Type::kSpawned) {
      running.insert(message.As<link::Spawned>()->pid);
    } else if (message.type == link::Type::kExit) {
      EXPECT_EQ(running.count(message.As<link::Exit>()->pid), 1U);
    }
  }
  EXPECT_EQ(Status().processes_watched, 0U);
}

TEST_F(SpawnerTest, ALimitThatIsAskedForReplacesTheDefault) {
  FakeEngine& engine = ReadyEngine();
  const char* const script = "exit $(($(ulimit -n) / 100))";
  for (const uint32_t spaces : {0U, kSpaces}) {
    link::Spawn spawn = Script(script);
    spawn.new_namespaces = spaces;
    if (spaces == 0) {
      spawn.uid_map.clear();
      spawn.gid_map.clear();
    }
    Ask(engine, spawn);
    spawn.rlimits = {{.resource = RLIMIT_NOFILE, .soft = 2000, .hard = 2000}};
    Ask(engine, spawn);
  }
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 4; }));
  std::multiset<int> codes;
  for (const link::Exit& exit : engine.All<link::Exit>()) {
    codes.insert(WEXITSTATUS(exit.wait_status));
  }
  EXPECT_THAT(codes, testing::ElementsAre(10, 10, 20, 20));
}

TEST_F(SpawnerTest, GivesTheLimitsOfTheGroup) {
  link::Announce announce;
  announce.id = "c2";
  announce.ns = "default";
  // The last of these nobody may have.
  announce.rlimits = {{.resource = RLIMIT_CORE, .soft = 4096, .hard = 8192},
                      {.resource = RLIMIT_NPROC, .soft = 7, .hard = 9},
                      {.resource = RLIMIT_NOFILE, .soft = 300, .hard = UINT64_MAX}};
  const auto announced = KeeperTest::Ask<link::Announced>(announce);
  ASSERT_TRUE(announced) << announced.error().message;
  FakeEngine& engine = ReadyEngine();
  for (const uint32_t spaces : {0U, kSpaces}) {
    link::Spawn spawn = Script("exec sleep 60");
    spawn.new_namespaces = spaces;
    if (spaces == 0) {
      spawn.uid_map.clear();
      spawn.gid_map.clear();
    }
    spawn.group = announced->address;
    spawn.rlimits = {{.resource = RLIMIT_NPROC, .soft = 8, .hard = 8}};
    const link::Spawned child = Ask(engine, spawn);
    ASSERT_EQ(child.code, 0) << child.message;
    rlimit limit{};
    ASSERT_EQ(prlimit(child.pid, RLIMIT_CORE, nullptr, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, 4096U);
    EXPECT_EQ(limit.rlim_max, 8192U);
    ASSERT_EQ(prlimit(child.pid, RLIMIT_NPROC, nullptr, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, 8U) << "what was asked for comes before what the group has";
    ASSERT_EQ(prlimit(child.pid, RLIMIT_NOFILE, nullptr, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, 300U);
  }
}

TEST_F(SpawnerTest, GivesAControllingTerminal) {
  UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || grantpt(master.get()) < 0 || unlockpt(master.get()) < 0) {
    GTEST_SKIP() << "no terminals here";
  }
  char name[64] = {};
  ASSERT_EQ(ptsname_r(master.get(), name, sizeof(name)), 0);
  FakeEngine& engine = ReadyEngine();
  link::Spawn spawn = Script("exec sleep 60");
  spawn.fd_targets = {0};
  spawn.controlling_terminal = 0;
  std::vector<UniqueFd> fds;
  fds.emplace_back(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  const link::Spawned child = Ask(engine, spawn, std::move(fds));
  ASSERT_EQ(child.code, 0) << child.message;
  pid_t session = 0;
  EXPECT_EQ(ioctl(master.get(), TIOCGSID, &session), 0);
  EXPECT_EQ(session, child.pid);
}

TEST_F(SpawnerTest, WhatIsBornWithoutAnEngineIsFoundByTheNext) {
  const os::TestCgroup group;
  if (group.path.empty() || !WriteExisting(group.path + "/cgroup.freeze", "1")) {
    GTEST_SKIP() << "no cgroup v2 hierarchy that may be frozen";
  }
  AskFrozen(ReadyEngine(), group);
  engines[0]->Crash();
  ASSERT_TRUE(WriteExisting(group.path + "/cgroup.freeze", "0"));
  ASSERT_TRUE(Until([&] { return Status().processes_watched == 1; }));
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::NamedSpawn>(), 1U);
  ASSERT_EQ(kill(second.All<link::NamedSpawn>().front().pid, SIGKILL), 0);
  EXPECT_TRUE(Until([&] { return second.Count<link::Exit>() == 1; }));
}

TEST_F(SpawnerTest, WhatIsBornAfterTheNextEnginesSnapshotIsGivenUp) {
  const os::TestCgroup group;
  if (group.path.empty() || !WriteExisting(group.path + "/cgroup.freeze", "1")) {
    GTEST_SKIP() << "no cgroup v2 hierarchy that may be frozen";
  }
  AskFrozen(ReadyEngine(), group);
  // The frozen process, a copy of this one, keeps the ends of its sockets open.
  ASSERT_EQ(kill(Status().engine_pid, SIGKILL), 0);
  FakeEngine& second = ReadyEngine(1);
  EXPECT_EQ(second.Count<link::NamedSpawn>(), 0U);
  ASSERT_TRUE(WriteExisting(group.path + "/cgroup.freeze", "0"));
  EXPECT_TRUE(Until([&] { return Members(group).empty(); }));
  Settle();
  EXPECT_EQ(Status().processes_watched, 0U);
  EXPECT_EQ(second.Count<link::Spawned>(), 0U);
  EXPECT_EQ(second.Count<link::Exit>(), 0U);
}

}  // namespace
}  // namespace gantry::keeper
