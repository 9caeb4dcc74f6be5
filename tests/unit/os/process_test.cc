// SPDX-License-Identifier: Apache-2.0
#include "core/os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/host_process.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "core/os/splice.h"
#include "tests/unit/os/spawned.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Spawn, RunsWithTheGivenArgumentsAndEnvironmentAlone) {
  SpawnRequest request;
  request.env = {"A=1", "B=two words"};
  const auto result = RunScript("echo $A-$B-$HOME; exit 7", request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "1-two words-\n");
  EXPECT_EQ(result->exit_code, 7U);
}

TEST(Spawn, ReportsAFailedExecAndLeavesNoChild) {
  SpawnRequest request{.argv = {"/no/such/program"}};
  const auto result = SpawnProcess(request);
  EXPECT_EQ(result.error().code, Code::kNotFound);
  EXPECT_EQ(result.error().sys_errno, ENOENT);
  EXPECT_EQ(result.error().message, "exec '/no/such/program': ENOENT");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Spawn, NamesTheStepThatFailed) {
  SpawnRequest directory{.argv = {"/bin/true"}, .cwd = "/no/such/directory"};
  EXPECT_EQ(SpawnProcess(directory).error().message,
            "enter directory '/no/such/directory': ENOENT");
  SpawnRequest cgroup{.argv = {"/bin/true"}, .cgroup_tasks = {"/no/tasks"}};
  EXPECT_EQ(SpawnProcess(cgroup).error().message, "write '/no/tasks': ENOENT");
  SpawnRequest descriptor{.argv = {"/bin/true"}, .descriptors = {{.fd = 9999, .target = 3}}};
  EXPECT_EQ(SpawnProcess(descriptor).error().sys_errno, EBADF);
}

TEST(Spawn, RefusesContradictions) {
  EXPECT_EQ(SpawnProcess(SpawnRequest{}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SpawnProcess({.argv = {"true"}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SpawnProcess({.argv = {"/bin/true"}, .controlling_tty_fd = 0}).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(SpawnProcess({.argv = {"/bin/true"},
                          .descriptors = {{.fd = 0, .target = 5}, {.fd = 1, .target = 5}}})
                .error()
                .code,
            Code::kInvalidArgument);
}

TEST(Spawn, PassesTheListedDescriptorsAloneThoughTheyOverlap) {
  auto one = MakePipe();
  auto two = MakePipe();
  ASSERT_EQ(write(one->second.get(), "one\n", 4), 4);
  ASSERT_EQ(write(two->second.get(), "two\n", 4), 4);
  one->second.reset();
  two->second.reset();
  SpawnRequest request;
  const int a = one->first.get();
  const int b = two->first.get();
  // Each takes the number that the other has here.
  request.descriptors = {{.fd = a, .target = b}, {.fd = b, .target = a}};
  const std::string script = "cat <&" + std::to_string(b) + " <&" + std::to_string(b) + "; cat <&" +
                             std::to_string(a) + "; ls /proc/self/fd | wc -l";
  const auto result = RunScript(script, request);
  ASSERT_TRUE(result);
  // 0, 1, 2, the two, and the one with which `ls` reads the directory.
  EXPECT_EQ(result->output, "one\ntwo\n6\n");
}

TEST(Spawn, KeepsADescriptorOnItsOwnNumber) {
  auto pipe = MakePipe();
  ASSERT_EQ(write(pipe->second.get(), "same\n", 5), 5);
  pipe->second.reset();
  SpawnRequest request;
  const int fd = pipe->first.get();
  request.descriptors = {{.fd = fd, .target = fd}};
  EXPECT_EQ(RunScript("cat <&" + std::to_string(fd), request)->output, "same\n");
}

TEST(Spawn, GivesDevNullForStdioThatIsNotNamed) {
  const auto result = RunScript("readlink /proc/self/fd/0 /proc/self/fd/2");
  EXPECT_EQ(result->output, "/dev/null\n/dev/null\n");
}

TEST(Spawn, ResetsSignals) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction old{};
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(sigaction(SIGPIPE, &ignore, &old), 0);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
  const auto result = RunScript("grep -E '^Sig(Blk|Ign):' /proc/self/status");
  sigaction(SIGPIPE, &old, nullptr);
  sigset_t after;
  sigprocmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(result->output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  EXPECT_EQ(sigismember(&after, SIGUSR1), 1);
}

TEST(Spawn, LeavesSigpipeIgnoredWhereThatIsAskedFor) {
  SpawnRequest request;
  request.ignore_sigpipe = true;
  const auto result = RunScript("grep -E '^Sig(Blk|Ign):' /proc/self/status", request);
  EXPECT_EQ(result->output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001000\n");
}

TEST(Spawn, SetsWhatTheProcessIs) {
  SpawnRequest request;
  request.new_session = true;
  request.cwd = "/usr";
  request.no_new_privs = true;
  request.oom_score_adj = 555;
  request.limits = {{.resource = RLIMIT_NOFILE, .value = {.rlim_cur = 20, .rlim_max = 20}},
                    {.resource = RLIMIT_CORE, .value = {.rlim_cur = 0, .rlim_max = 0}}};
  const auto result = RunScript(
      "pwd; cat /proc/self/oom_score_adj; ulimit -n; ulimit -c; "
      "grep NoNewPrivs /proc/self/status; cut -d' ' -f1,6 /proc/$$/stat",
      request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->output, HasSubstr("/usr\n555\n20\n0\nNoNewPrivs:\t1\n"));
  // Its own session: the session's number is its pid.
  const std::string last = result->output.substr(result->output.find("\t1\n") + 3);
  const size_t blank = last.find(' ');
  EXPECT_EQ(last.substr(0, blank) + "\n", last.substr(blank + 1));
}

TEST(Spawn, SetsALimitAsFarAsItMay) {
  rlimit own{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  SpawnRequest request;
  // So many files nobody may have: more than fs.nr_open can be.
  request.limits = {{.resource = RLIMIT_NOFILE,
                     .value = {.rlim_cur = 300, .rlim_max = RLIM_INFINITY},
                     .as_far_as_allowed = true}};
  const auto nearest = RunScript("ulimit -Sn; ulimit -Hn", request);
  ASSERT_TRUE(nearest) << nearest.error().message;
  EXPECT_EQ(nearest->output, Format("300\n{}\n", own.rlim_max));
  request.limits.front().value.rlim_cur = RLIM_INFINITY;
  const auto most = RunScript("ulimit -Sn; ulimit -Hn", request);
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->output, Format("{0}\n{0}\n", own.rlim_max));
  request.limits.front().as_far_as_allowed = false;
  EXPECT_EQ(RunScript("true", request).error().sys_errno, EPERM);
}

TEST(Spawn, ChangesTheUser) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  SpawnRequest request;
  request.uid = 1234;
  request.gid = 2345;
  request.parent_death_signal = SIGKILL;
  EXPECT_EQ(RunScript("id -u; id -g; id -G", request)->output, "1234\n2345\n2345\n");
}

TEST(Spawn, JoinsNamespaces) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  SpawnRequest holder{.argv = {"/usr/bin/unshare", "--uts", "/bin/sleep", "1000"}};
  auto spawned = SpawnProcess(holder);
  if (!spawned) {
    GTEST_SKIP() << spawned.error().message;
  }
  const Child child(std::move(*spawned));
  const std::string own = ReadLink("/proc/self/ns/uts").value();
  const std::string link = "/proc/" + std::to_string(child.process().pid) + "/ns/uts";
  std::string other;
  // `unshare` makes the namespace a moment after it has been executed.
  for (int i = 0; i < 10000 && (other.empty() || other == own); ++i) {
    sched_yield();
    other = ReadLink(link).value_or(own);
    if (HasEnded(child.pidfd())) {
      GTEST_SKIP() << "no namespaces here";
    }
  }
  const UniqueFd space(open(link.c_str(), O_RDONLY | O_CLOEXEC));
  SpawnRequest request;
  request.namespaces = {{.fd = space.get(), .type = CLONE_NEWUTS}};
  EXPECT_EQ(RunScript("readlink /proc/self/ns/uts", request)->output, other + "\n");
}

TEST(Spawn, HasRoomForDescriptorsWhereItsProgramIsGivenByOne) {
  const UniqueFd program(open("/bin/sh", O_PATH | O_CLOEXEC));
  ASSERT_TRUE(program);
  // The kernel's word for its table, as it is once the program runs.
  const char* script =
      "while read -r key size; do [ $key != FDSize: ] || exit $((size < 512)); done "
      "</proc/self/status; exit 2";
  auto spawned = SpawnProcess({.program_fd = program.get(), .argv = {"sh", "-c", script}});
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 0U);
}

TEST(Spawn, RunsAProgramThatIsGoneFromItsPlace) {
  const auto dir = TempDir::Create();
  const std::string path = dir->path() + "/sh";
  ASSERT_TRUE(ReplaceFile(path, ReadFile("/bin/sh", 64U << 20).value(), 0755));
  const UniqueFd program(open(path.c_str(), O_PATH | O_CLOEXEC));
  ASSERT_EQ(unlink(path.c_str()), 0);
  auto spawned = SpawnProcess({.program_fd = program.get(), .argv = {"a name", "-c", "exit 7"}});
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 7U);
}

TEST(Spawn, ExecutesInAUserNamespaceWhatOnlyTheNodesRootReaches) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  const auto space = mount::NewUserNamespace({{200000, 0, 65536}}, {{200000, 0, 65536}});
  if (!space) {
    GTEST_SKIP() << space.error().message;
  }
  std::string folder = "/tmp/gantry-spawn-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string program = folder + "/true";
  ASSERT_TRUE(ReplaceFile(program, ReadFile("/bin/true", 64U << 20).value(), 0755));
  SpawnRequest request{.argv = {program}};
  request.namespaces = {{.fd = space->get(), .type = CLONE_NEWUSER}};
  request.uid = 0;
  request.gid = 0;
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 0U);
  EXPECT_TRUE(RemoveTree(folder));
}

TEST(Spawn, EntersAVersion1Cgroup) {
  const std::string parent = "/sys/fs/cgroup/pids";
  const std::string group = parent + "/gantry-" + RandomName(8);
  if (mkdir(group.c_str(), 0755) < 0) {
    GTEST_SKIP() << "no cgroup v1 hierarchy that may be written";
  }
  SpawnRequest request;
  request.cgroup_tasks = {group + "/tasks"};
  const auto result = RunScript("grep :pids: /proc/self/cgroup", request);
  EXPECT_EQ(rmdir(group.c_str()), 0);
  EXPECT_THAT(result->output, HasSubstr(group.substr(parent.size())));
}

TEST(Spawn, IsBornInAVersion2Cgroup) {
  const TestCgroup group;
  if (group.path.empty()) {
    GTEST_SKIP() << "no cgroup v2 hierarchy that may be written";
  }
  SpawnRequest request;
  request.cgroup_fd = group.dir.get();
  const auto result = RunScript("grep ^0:: /proc/self/cgroup", request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "0::" + group.name + "\n");
}

TEST(Spawn, DoesNotHangOnAFrozenCgroup) {
  const TestCgroup group;
  if (group.path.empty() || !WriteExisting(group.path + "/cgroup.freeze", "1")) {
    GTEST_SKIP() << "no cgroup v2 hierarchy that may be frozen";
  }
  const auto result = SpawnProcess({.argv = {"/bin/true"}, .cgroup_fd = group.dir.get()},
                                   std::chrono::milliseconds(1));
  int status = 0;
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_EQ(WaitStatus{status}.code(), 128U + SIGKILL);
  EXPECT_EQ(result.error().code, Code::kDeadlineExceeded);
}

TEST(Spawn, GivesAControllingTerminal) {
  UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || grantpt(master.get()) < 0 || unlockpt(master.get()) < 0) {
    GTEST_SKIP() << "no terminals here";
  }
  std::array<char, 64> name{};
  ASSERT_EQ(ptsname_r(master.get(), name.data(), name.size()), 0);
  const UniqueFd slave(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  SpawnRequest request;
  request.new_session = true;
  request.controlling_tty_fd = slave.get();
  EXPECT_EQ(RunScript("(: </dev/tty) && echo yes", request)->output, "yes\n");
}

TEST(Spawn, BeginsAndFinishesApart) {
  SpawnRequest request{.argv = {"/bin/true"}};
  auto pending = BeginSpawn(request);
  ASSERT_TRUE(pending);
  pollfd poller{.fd = pending->status.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&poller, 1, 10000), 1);
  auto spawned = FinishSpawn(*pending);
  ASSERT_TRUE(spawned);
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 0U);
}

TEST(Reaping, GivesWhoEndedAndHow) {
  EXPECT_EQ(ReapNext().value(), std::nullopt);
  auto spawned = SpawnProcess({.argv = {"/bin/sh", "-c", "exit 5"}});
  ASSERT_TRUE(spawned);
  pollfd poller{.fd = spawned->pidfd.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&poller, 1, 10000), 1);
  const auto reaped = ReapNext();
  ASSERT_TRUE(reaped.value());
  EXPECT_EQ((*reaped)->process, spawned->process);
  EXPECT_EQ(WaitStatus{(*reaped)->wait_status}.code(), 5U);
  EXPECT_EQ(ReapNext().value(), std::nullopt);
}

TEST(Reaping, OfStraysLeavesOtherThreadsChildrenAlone) {
  auto others = SpawnProcess({.argv = {"/bin/sh", "-c", "exit 5"}});
  ASSERT_TRUE(others);
  pollfd poller{.fd = others->pidfd.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&poller, 1, 10000), 1);
  std::thread([] {
    EXPECT_TRUE(ReapLeftChildren().reaped.empty());
    auto own = SpawnProcess({.argv = {"/bin/sleep", "1000"}});
    ASSERT_TRUE(own);
    EXPECT_TRUE(ReapLeftChildren().running);
    ASSERT_TRUE(SendSignal(own->pidfd.get(), SIGKILL));
    pollfd ended{.fd = own->pidfd.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&ended, 1, 10000), 1);
    const LeftChildren left = ReapLeftChildren();
    EXPECT_EQ(left.reaped, std::vector<pid_t>{own->process.pid});
    EXPECT_FALSE(left.running);
  }).join();
  EXPECT_EQ(ReapLeftChildren().reaped, std::vector<pid_t>{others->process.pid});
}

TEST(SignalFd, ReadsBlockedSignals) {
  sigset_t before;
  ASSERT_EQ(sigprocmask(SIG_SETMASK, nullptr, &before), 0);
  const auto fd = OpenSignalFd({SIGUSR2});
  ASSERT_TRUE(fd);
  ASSERT_EQ(raise(SIGUSR2), 0);
  std::array<char, 512> buffer{};
  EXPECT_GT(ReadSome(fd->get(), buffer)->bytes, 0U);
  EXPECT_TRUE(ReadSome(fd->get(), buffer)->would_block);
  ASSERT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
}

}  // namespace
}  // namespace gantry::os
