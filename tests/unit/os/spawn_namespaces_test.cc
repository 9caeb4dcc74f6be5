// SPDX-License-Identifier: Apache-2.0
//
// Processes with namespaces of their own, as the kernel shows them.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/host_process.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "tests/unit/os/few_descriptors.h"
#include "tests/unit/os/proc_of.h"
#include "tests/unit/os/spawned.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kAll =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
const std::vector<IdMapping> kMapped = {{.host_id = 100000, .container_id = 0, .length = 65536}};

class SpawnNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    if (const auto space = mount::NewUserNamespace({{0, 0, 1}}, {{0, 0, 1}}); !space) {
      GTEST_SKIP() << space.error().message;
    }
  }

  /// Every test collects what it has made.
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  /// A request that is root in new namespaces.
  static SpawnRequest Root(int namespaces, const std::vector<IdMapping>& map = {}) {
    SpawnRequest request;
    request.new_namespaces = namespaces;
    request.uid_map = map;
    request.gid_map = map;
    request.uid = 0;
    request.gid = 0;
    return request;
  }

  static SpawnRequest Sleeper(SpawnRequest request) {
    request.argv = {"/bin/sleep", "1000"};
    return request;
  }
};

ino_t NumberOf(const UniqueFd& file) {
  struct stat status{};
  return fstat(file.get(), &status) == 0 ? status.st_ino : 0;
}

/// The user namespace that a process's namespace belongs to.
ino_t OwnerOf(const ProcessId& process, const std::string& name) {
  const UniqueFd space = OpenNamespace(process, name);
  return NumberOf(UniqueFd(ioctl(space.get(), NS_GET_USERNS)));
}

/// The network namespace of a thread that has ended.
UniqueFd NewNetwork() {
  UniqueFd network;
  std::thread([&network] {
    if (unshare(CLONE_NEWNET) == 0) {
      network.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
  }).join();
  return network;
}

void CollectAll() {
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

bool IsReadable(const UniqueFd& fd) {
  pollfd poller{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return poll(&poller, 1, 10000) == 1;
}

TEST_F(SpawnNamespaces, AreNewAndBelongToTheNewUserNamespace) {
  SpawnRequest request = Sleeper(Root(kAll));
  request.parent_death_signal = SIGKILL;
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  const ino_t user = NumberOf(OpenNamespace(child.process(), "user"));
  for (const std::string name : {"pid", "mnt", "ipc", "uts", "net"}) {
    EXPECT_NE(LinkOf(child.process(), name), LinkOf(Self(), name));
    EXPECT_EQ(OwnerOf(child.process(), name), user) << name;
  }
  EXPECT_EQ(LinkOf(child.process(), "cgroup"), LinkOf(Self(), "cgroup"));
  EXPECT_EQ(StatusLine(child.process(), "NSpid:"),
            "NSpid:\t" + std::to_string(child.process().pid) + "\t1");
  EXPECT_EQ(StatusLine(child.process(), "PPid:"), "PPid:\t" + std::to_string(getpid()));
}

TEST_F(SpawnNamespaces, LetItsRootMountAProcOfItsOwn) {
  SpawnRequest request = Root(kAll, kMapped);
  const auto result = RunScript(
      "mount -t proc proc /proc && readlink /proc/self/ns/pid && echo $$ $PPID && "
      "hostname inside && hostname && grep ^CapEff: /proc/1/status",
      request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->output, StartsWith("pid:["));
  EXPECT_THAT(result->output, HasSubstr("\n1 0\ninside\nCapEff:\t000001ff"));
}

TEST_F(SpawnNamespaces, MapIds) {
  auto spawned = SpawnProcess(Sleeper(Root(kAll, kMapped)));
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  EXPECT_EQ(StatusLine(child.process(), "Uid:"), "Uid:\t100000\t100000\t100000\t100000");
  EXPECT_EQ(StatusLine(child.process(), "Gid:"), "Gid:\t100000\t100000\t100000\t100000");
  EXPECT_EQ(StatusLine(child.process(), "Groups:"), "Groups:\t ");
  EXPECT_EQ(RunScript("id -u; id -g; xargs </proc/self/uid_map; xargs </proc/self/gid_map; "
                      "cat /proc/self/setgroups",
                      Root(kAll, kMapped))
                ->output,
            "0\n0\n0 100000 65536\n0 100000 65536\nallow\n");
}

TEST_F(SpawnNamespaces, MapIdsToThemselvesWhereNoMapIsGiven) {
  std::istringstream own(ReadFile("/proc/self/uid_map", 65536).value());
  std::string first;
  std::string length;
  own >> first >> first >> length;
  EXPECT_EQ(
      RunScript("xargs </proc/self/uid_map | cut -d' ' -f3; id -u 2>&1; id -G", Root(CLONE_NEWUSER))
          ->output,
      length + "\n0\n0\n");
}

TEST_F(SpawnNamespaces, OfTheNodeNeedNoNewUserNamespace) {
  SpawnRequest request = Sleeper({});
  request.new_namespaces = CLONE_NEWPID | CLONE_NEWNS;
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  EXPECT_EQ(LinkOf(child.process(), "user"), LinkOf(Self(), "user"));
  EXPECT_EQ(OwnerOf(child.process(), "pid"), NumberOf(OpenNamespace(Self(), "user")));
  EXPECT_NE(LinkOf(child.process(), "mnt"), LinkOf(Self(), "mnt"));
  EXPECT_THAT(StatusLine(child.process(), "NSpid:"), testing::EndsWith("\t1"));
}

TEST_F(SpawnNamespaces, GoWithAJoinedNetwork) {
  const UniqueFd network = NewNetwork();
  ASSERT_TRUE(network);
  SpawnRequest request =
      Sleeper(Root(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC, kMapped));
  request.namespaces = {{.fd = network.get(), .type = CLONE_NEWNET}};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  EXPECT_EQ(NumberOf(OpenNamespace(child.process(), "net")), NumberOf(network));
  EXPECT_EQ(OwnerOf(child.process(), "net"), NumberOf(OpenNamespace(Self(), "user")));
  EXPECT_EQ(OwnerOf(child.process(), "pid"), NumberOf(OpenNamespace(child.process(), "user")));
  EXPECT_EQ(OwnerOf(child.process(), "mnt"), NumberOf(OpenNamespace(child.process(), "user")));
  EXPECT_NE(LinkOf(child.process(), "user"), LinkOf(Self(), "user"));
}

TEST_F(SpawnNamespaces, BelongToAJoinedUserNamespace) {
  const auto user = mount::NewUserNamespace({{100000, 0, 65536}}, {{100000, 0, 65536}});
  ASSERT_TRUE(user);
  SpawnRequest request = Root(CLONE_NEWPID | CLONE_NEWNS);
  request.namespaces = {{.fd = user->get(), .type = CLONE_NEWUSER}};
  const auto result = RunScript("mount -t proc proc /proc && echo $$; id -u", request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "1\n0\n");
}

TEST_F(SpawnNamespaces, ComeAfterOomScoreAndLimits) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const test::FewDescriptors few(128);
  SpawnRequest request = Root(kAll, kMapped);
  request.oom_score_adj = 555;
  request.limits = {{.resource = RLIMIT_NOFILE,
                     .value = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max}},
                    {.resource = RLIMIT_CORE, .value = {.rlim_cur = 0, .rlim_max = 0}}};
  EXPECT_EQ(RunScript("cat /proc/self/oom_score_adj; ulimit -n; ulimit -c", request)->output,
            "555\n" + std::to_string(before.rlim_max) + "\n0\n");
  request.limits = {{.resource = RLIMIT_NOFILE, .value = {.rlim_cur = 20, .rlim_max = 20}}};
  EXPECT_EQ(RunScript("ulimit -n; ulimit -Hn", request)->output, "20\n20\n");
}

TEST_F(SpawnNamespaces, AreBornInACgroup) {
  const TestCgroup group;
  const std::string parent = "/sys/fs/cgroup/pids";
  const std::string pids = parent + "/gantry-" + RandomName(8);
  const bool old = mkdir(pids.c_str(), 0755) == 0;
  SpawnRequest request = Sleeper(Root(kAll | CLONE_NEWCGROUP, kMapped));
  if (!group.path.empty()) {
    request.cgroup_fd = group.dir.get();
  }
  if (old) {
    request.cgroup_tasks = {pids + "/tasks"};
  }
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  Child child(std::move(*spawned));
  const std::string self = "/proc/" + std::to_string(child.process().pid) + "/cgroup";
  const std::string shown = ReadFile(self, 65536).value();
  EXPECT_THAT(shown, HasSubstr("0::" + group.name + "\n"));
  EXPECT_THAT(shown, HasSubstr(old ? ":pids:" + pids.substr(parent.size()) + "\n" : ""));
  // Its cgroup is the root of its cgroup namespace.
  EXPECT_THAT(RunScript("cat /proc/self/cgroup", request)->output, HasSubstr("0::/\n"));
  IgnoreError(SendSignal(child.pidfd(), SIGKILL), "the test fails then");
  child.Wait();
  EXPECT_EQ(rmdir(pids.c_str()), old ? 0 : -1);
}

TEST_F(SpawnNamespaces, ExecuteWhatOnlyTheNodesRootReaches) {
  const auto dir = TempDir::Create();
  const std::string program = dir->path() + "/true";
  ASSERT_TRUE(ReplaceFile(program, ReadFile("/bin/true", 64U << 20).value(), 0755));
  ASSERT_EQ(chmod(dir->path().c_str(), 0700), 0);
  SpawnRequest request = Root(kAll, kMapped);
  request.argv = {program};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 0U);
}

TEST_F(SpawnNamespaces, EndWithTheirFirstProcess) {
  auto pipe = MakePipe();
  SpawnRequest request = Root(kAll, kMapped);
  request.argv = {"/bin/sh", "-c", "sleep 1000 & echo there; wait"};
  request.descriptors = {{.fd = pipe->second.get(), .target = 1}};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  Child child(std::move(*spawned));
  pipe->second.reset();
  std::array<char, 16> text{};
  ASSERT_TRUE(IsReadable(pipe->first));
  ASSERT_EQ(read(pipe->first.get(), text.data(), text.size()), 6);
  ASSERT_TRUE(SendSignal(child.pidfd(), SIGKILL));
  EXPECT_EQ(child.Wait(), 128U + SIGKILL);
  ASSERT_TRUE(IsReadable(pipe->first));
  EXPECT_EQ(read(pipe->first.get(), text.data(), text.size()), 0) << "the other has ended, too";
}

TEST_F(SpawnNamespaces, GoWithAControllingTerminal) {
  UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || grantpt(master.get()) < 0 || unlockpt(master.get()) < 0) {
    GTEST_SKIP() << "no terminals here";
  }
  std::array<char, 64> name{};
  ASSERT_EQ(ptsname_r(master.get(), name.data(), name.size()), 0);
  const UniqueFd slave(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  SpawnRequest request = Root(kAll, kMapped);
  request.new_session = true;
  request.controlling_tty_fd = slave.get();
  request.argv = {"/bin/sh", "-c", "trap : INT; echo there; sleep 1000; exit $?"};
  request.env = {"PATH=/usr/bin:/bin"};
  auto pipe = MakePipe();
  request.descriptors = {{.fd = slave.get(), .target = 0}, {.fd = pipe->second.get(), .target = 1}};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  Child child(std::move(*spawned));
  pid_t session = 0;
  EXPECT_EQ(ioctl(master.get(), TIOCGSID, &session), 0);
  EXPECT_EQ(session, child.process().pid);
  ASSERT_TRUE(IsReadable(pipe->first));
  // ^C, until the shell has started what it kills.
  while (!HasEnded(child.pidfd()) && write(master.get(), "\x03", 1) == 1) {
    sched_yield();
  }
  EXPECT_EQ(child.Wait(), 128U + SIGINT);
}

TEST_F(SpawnNamespaces, EndWithTheThreadThatMadeThem) {
  SpawnRequest request = Sleeper(Root(kAll, kMapped));
  request.parent_death_signal = SIGKILL;
  Result<SpawnResult> spawned = Fail(Code::kInternal, "not begun");
  std::thread([&] { spawned = SpawnProcess(request); }).join();
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(Child(std::move(*spawned)).Wait(), 128U + SIGKILL);
}

TEST_F(SpawnNamespaces, AreRefusedWhereTheyContradict) {
  const auto code = [](const SpawnRequest& request) { return SpawnProcess(request).error().code; };
  SpawnRequest joined = Sleeper(Root(CLONE_NEWUSER));
  const UniqueFd user = OpenNamespace(Self(), "user");
  joined.namespaces = {{.fd = user.get(), .type = CLONE_NEWUSER}};
  EXPECT_EQ(code(joined), Code::kInvalidArgument);
  EXPECT_EQ(code(Sleeper(Root(CLONE_NEWPID, kMapped))), Code::kInvalidArgument);
  EXPECT_EQ(code(Sleeper(Root(CLONE_NEWPID | CLONE_VM))), Code::kInvalidArgument);
  SpawnRequest half = Sleeper(Root(CLONE_NEWUSER, kMapped));
  half.gid_map.clear();
  EXPECT_EQ(code(half), Code::kInvalidArgument);
}

TEST_F(SpawnNamespaces, LeaveNothingWhereAStepFails) {
  SpawnRequest program = Root(kAll, kMapped);
  program.argv = {"/no/such/program"};
  EXPECT_EQ(SpawnProcess(program).error().message, "open '/no/such/program': ENOENT");
  program = {.argv = {"/no/such/program"}, .new_namespaces = CLONE_NEWPID};
  EXPECT_EQ(SpawnProcess(program).error().message, "exec '/no/such/program': ENOENT");
  SpawnRequest directory = Sleeper(Root(kAll, kMapped));
  directory.cwd = "/no/such/directory";
  EXPECT_EQ(SpawnProcess(directory).error().message,
            "enter directory '/no/such/directory': ENOENT");
  SpawnRequest user = Sleeper(Root(kAll, kMapped));
  user.uid = 65536;
  EXPECT_EQ(SpawnProcess(user).error().message, "set uid 65536: EINVAL");
}

TEST_F(SpawnNamespaces, LeaveNothingWhereAMapIsRefused) {
  const auto result = SpawnProcess(Sleeper(Root(kAll, {{.host_id = 1, .length = 0}})));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_THAT(result.error().message, StartsWith("write uid_map of process "));
  EXPECT_EQ(result.error().sys_errno, EINVAL);
}

TEST_F(SpawnNamespaces, LeaveNothingWhereTheCallerForgetsThem) {
  auto pending = BeginSpawn(Sleeper(Root(kAll)));
  ASSERT_TRUE(pending);
  ASSERT_TRUE(IsReadable(pending->status));
  *pending = PendingSpawn();
  // The second one ends where it waited.
  CollectAll();
}

TEST_F(SpawnNamespaces, MayBeGivenUpAtTheirBirth) {
  auto pending = BeginSpawn(Sleeper(Root(kAll)));
  ASSERT_TRUE(pending);
  const ProcessId first = pending->process;
  EXPECT_TRUE(pending->birth.due);
  ASSERT_TRUE(IsReadable(pending->status));
  ProcessId second;
  const auto result = FinishSpawn(*pending, [&] {
    second = pending->process;
    return false;
  });
  EXPECT_EQ(result.error().code, Code::kAborted);
  EXPECT_FALSE(pending->birth.due);
  EXPECT_NE(second, first);
  int status = 0;
  EXPECT_EQ(waitpid(second.pid, &status, 0), second.pid);
  EXPECT_EQ(WaitStatus{status}.code(), 128U + SIGKILL);
  EXPECT_EQ(waitpid(first.pid, &status, 0), first.pid);
  EXPECT_EQ(status, 0);
}

TEST_F(SpawnNamespaces, AreNotBornOfAProcessThatIsKilled) {
  const TestCgroup group;
  if (group.path.empty() || !WriteExisting(group.path + "/cgroup.freeze", "1")) {
    GTEST_SKIP() << "no cgroup v2 hierarchy that may be frozen";
  }
  SpawnRequest request = Sleeper(Root(kAll));
  request.cgroup_fd = group.dir.get();
  auto pending = BeginSpawn(request);
  ASSERT_TRUE(pending);
  EXPECT_EQ(FinishSpawn(*pending).error().code, Code::kUnavailable);
  ASSERT_TRUE(SendSignal(pending->pidfd.get(), SIGKILL));
  ASSERT_TRUE(IsReadable(pending->pidfd));
  EXPECT_EQ(FinishSpawn(*pending).error().code, Code::kAborted);
}

TEST_F(SpawnNamespaces, AreGoneWhereTheProcessIsKilledAtItsBirth) {
  auto pending = BeginSpawn(Sleeper(Root(kAll)));
  ASSERT_TRUE(pending);
  const ProcessId first = pending->process;
  // The first one has ended; the second one waits.
  ASSERT_TRUE(IsReadable(pending->pidfd));
  std::istringstream children(ReadFile("/proc/thread-self/children", 4096).value());
  pid_t second = 0;
  while (children >> second && second == first.pid) {
  }
  ASSERT_GT(second, 0);
  ASSERT_EQ(kill(second, SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(second), &info, WEXITED | WNOWAIT), 0);
  const auto result = FinishSpawn(*pending);
  EXPECT_EQ(result.error().code, Code::kAborted);
  EXPECT_EQ(waitpid(-1, nullptr, 0), first.pid);
}

/// Takes CAP_SYS_PTRACE from this thread, with which anybody may look into any process.
bool DropPtrace() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> own{};
  if (syscall(SYS_capget, &header, own.data()) != 0) {
    return false;
  }
  own[0].effective &= ~(1U << CAP_SYS_PTRACE);
  own[0].permitted &= ~(1U << CAP_SYS_PTRACE);
  own[0].inheritable &= ~(1U << CAP_SYS_PTRACE);
  return syscall(SYS_capset, &header, own.data()) == 0;
}

/// Calls `look` when the child of `request`, which has new namespaces, has joined others and
/// waits to be released.
void LookAtTheChild(const SpawnRequest& request, const std::function<void(pid_t)>& look) {
  auto pending = BeginSpawn(request);
  ASSERT_TRUE(pending) << pending.error().message;
  bool looked = false;
  Code code = Code::kUnavailable;
  while (code == Code::kUnavailable && IsReadable(pending->status)) {
    const auto finished = FinishSpawn(*pending, [&] {
      look(pending->process.pid);
      looked = true;
      return true;
    });
    code = finished ? Code::kOk : finished.error().code;
  }
  EXPECT_EQ(code, Code::kOk);
  EXPECT_TRUE(looked);
  CollectAll();
}

TEST_F(SpawnNamespaces, InThoseThatItJoinsItHasWhatIsNamedAlone) {
  const UniqueFd network = NewNetwork();
  std::vector<UniqueFd> ours;
  for (int i = 0; i < 20; ++i) {
    ours.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  SpawnRequest request = Root(CLONE_NEWUTS);
  request.argv = {"/bin/true"};
  request.namespaces = {{.fd = network.get(), .type = CLONE_NEWNET}};
  request.descriptors = {{.fd = ours[7].get(), .target = 5}};
  std::vector<std::string> open_there;
  LookAtTheChild(request, [&](pid_t pid) {
    const std::string fds = "/proc/" + std::to_string(pid) + "/fd";
    for (const std::string& name : ListDirectory(fds, 1000).value_or(std::vector<std::string>())) {
      // What it has closed since is the end of the first child, which alone it closes then.
      if (const auto link = ReadLink(fds + "/" + name); link && std::stoi(name) > STDERR_FILENO) {
        open_there.push_back(*link);
      }
    }
  });
  // The end of the first child, which it may still be about to see.
  EXPECT_LE(std::erase(open_there, "anon_inode:[pidfd]"), 1U);
  // Beside these the sources of 0, 1 and 2, and the socket on which it tells and waits.
  EXPECT_EQ(std::ranges::count_if(open_there,
                                  [](const std::string& to) { return to.starts_with("net:"); }),
            1);
  EXPECT_EQ(std::ranges::count_if(open_there,
                                  [](const std::string& to) { return to.starts_with("socket:"); }),
            1);
  EXPECT_EQ(std::ranges::count(open_there, "/dev/null"), 2);
  EXPECT_EQ(open_there.size(), 4U) << testing::PrintToString(open_there);
}

TEST_F(SpawnNamespaces, InThoseThatItJoinsNobodyLooksIntoIt) {
  std::thread([] {
    ASSERT_TRUE(DropPtrace());
    SpawnRequest request = Root(CLONE_NEWUTS);
    request.argv = {"/bin/true"};
    LookAtTheChild(request, [](pid_t pid) {
      const auto seen = ReadLink("/proc/" + std::to_string(pid) + "/exe");
      ASSERT_FALSE(seen) << *seen;
      EXPECT_EQ(seen.error().code, Code::kPermissionDenied);
    });
  }).join();
}

}  // namespace
}  // namespace gantry::os
