// SPDX-License-Identifier: Apache-2.0
//
// How a container is made, not what it is: gate, terminal, descriptors, what is refused and how it
// is said, what a hostile root gets, and that nothing is left.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/toolkit/container/make_with.h"
#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;
using testing::Not;

class MakeSteps : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  // A container that is made, or the end of the test.
  Result<MadeProcess> MakeOf(const Config& config) {
    auto request = bundle_.RequestOf(config);
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return Make(*request);
  }

  Bundle bundle_;
};

// This test's process has no child left to be collected.
bool HasNoChild() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

std::string ReadAt(const std::string& path) { return ReadFile(path, 64 << 10).value_or("nothing"); }

TEST_F(MakeSteps, WaitsAtTheGate) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  auto request = bundle_.RequestOf({.script = "echo started"});
  ASSERT_TRUE(request.has_value());
  request->streams = {-1, out.get(), -1};
  auto made = Make(*request);
  out.reset();
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const std::string of_process = "/proc/" + std::to_string(made->pid());
  EXPECT_EQ(ReadAt(of_process + "/comm"), ReadAt("/proc/self/comm"));
  ASSERT_TRUE(made->Start().has_value());
  EXPECT_EQ(Drain(in.get()), "started\n");
  EXPECT_EQ(EndOf(made->pid()), "exit 0");
  EXPECT_EQ(made->Start().error().code, Code::kFailedPrecondition);
}

TEST_F(MakeSteps, EndsWhatIsNotStarted) {
  pid_t pid = 0;
  {
    const auto made = MakeOf({.script = "echo started >/started"});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    pid = made->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_TRUE(HasNoChild());
  EXPECT_FALSE(Exists(bundle_.InRoot("/started")));
}

TEST_F(MakeSteps, HidesFromOthersAtTheGate) {
  const auto made = MakeOf({.script = ":", .user = R"({"uid": 1000, "gid": 1000})"});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  // Files of a process that nobody may look into belong to root, whoever it is.
  struct stat about{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(made->pid()) + "/environ").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0U);
}

TEST_F(MakeSteps, LeavesNoDescriptorOfTheMaker) {
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY));  // Without CLOEXEC.
  ASSERT_TRUE(static_cast<bool>(secret));
  // 3 is the shell's own, by which it reads the folder.
  EXPECT_EQ(bundle_.Run({.script = "echo /proc/1/fd/*"}),
            "/proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/fd/3\nexit 0");
}

// Goes no further than to the namespaces, and says what it has there.
class LooksAtDescriptors : public RootSteps {
 public:
  Status Open() override { return {}; }

  Status Mount() override {
    std::string seen;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // The one that reads the folder.
      seen += " " + std::filesystem::read_symlink(entry, gone).string();
    }
    return Fail(Code::kAborted, "has{}", seen);
  }

  Status Enter() override { return {}; }

  Status AttachConsole(int) override { return {}; }

  Status Seal() override { return {}; }
};

TEST_F(MakeSteps, HasNoDescriptorOfTheMakerBesideAContainer) {
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  const auto request = bundle_.RequestOf({.script = ":"});
  ASSERT_TRUE(request.has_value());
  LooksAtDescriptors root;
  const auto made = MakeWith(*request, &root);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, testing::StartsWith("has /"));
  EXPECT_THAT(made.error().message, Not(HasSubstr("/etc/hostname")));
}

TEST_F(MakeSteps, PassesDescriptorsOn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const UniqueFd other(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto request = bundle_.RequestOf({.script = "echo on >&4; echo /proc/1/fd/* >&4"});
  ASSERT_TRUE(request.has_value());
  request->passed_on = {other.get(), out.get()};
  auto made = Make(*request);
  out.reset();
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_TRUE(made->Start().has_value());
  EXPECT_THAT(Drain(in.get()), HasSubstr("on\n/proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/fd/3 "
                                         "/proc/1/fd/4 "));
  EXPECT_EQ(EndOf(made->pid()), "exit 0");
}

TEST_F(MakeSteps, GivesATerminal) {
  auto made = MakeOf({.process = R"("terminal": true, "consoleSize": {"width": 81, "height": 26})",
                      .script = "tty; stty size; stat -c %u /dev/pts/0; echo >/dev/tty",
                      .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                         {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                          "options": ["newinstance", "ptmxmode=0666", "mode=0620"]})",
                      .user = R"({"uid": 1000, "gid": 1000})"});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const UniqueFd master = made->TakeConsole();
  ASSERT_TRUE(static_cast<bool>(master));
  ASSERT_TRUE(made->Start().has_value());
  // Until the last replica is closed: EIO.
  EXPECT_EQ(Drain(master.get()), "/dev/pts/0\r\n26 81\r\n1000\r\n\r\n");
  EXPECT_EQ(EndOf(made->pid()), "exit 0");
}

TEST_F(MakeSteps, MakesSiblings) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t maker = ::fork();
  if (maker == 0) {
    auto request = bundle_.RequestOf({.script = "exit 7"});
    request->sibling = true;
    auto made = Make(*request);
    const bool good = made && made->Start();
    const pid_t pid = made ? made->pid() : 0;
    ::_exit(good && ::write(out.get(), &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1);
  }
  out.reset();
  EXPECT_EQ(EndOf(maker), "exit 0");
  pid_t pid = 0;
  ASSERT_EQ(::read(in.get(), &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  EXPECT_EQ(EndOf(pid), "exit 7");
  EXPECT_GT(::waitpid(-1, nullptr, 0), 0) << "the first child, which has ended by itself";
  EXPECT_TRUE(HasNoChild());
}

TEST_F(MakeSteps, AsksAListener) {
  auto request = bundle_.RequestOf({.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW",
         "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}]})",
                                    .script = "mkdir /asked; exit 3"});
  ASSERT_TRUE(request.has_value());
  request->takes_listener = true;
  auto made = Make(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  UniqueFd listener;
  const Status started = made->Start(&listener);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  ASSERT_TRUE(static_cast<bool>(listener));
  pollfd asked{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&asked, 1, -1), 1);
  EXPECT_NE(asked.revents & POLLIN, 0);
  listener.reset();  // Nobody answers: ENOSYS.
  EXPECT_EQ(EndOf(made->pid()), "exit 3");
  EXPECT_FALSE(Exists(bundle_.InRoot("/asked")));
}

TEST_F(MakeSteps, TellsWhatItLeavesOut) {
  const auto made = MakeOf({.process = R"("capabilities": {"bounding": ["CAP_FUTURE"]})",
                            .linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW",
                               "syscalls": [{"names": ["future"], "action": "SCMP_ACT_LOG"}]})",
                            .script = ":"});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_THAT(made->warnings(),
              testing::ElementsAre("capability 'CAP_FUTURE' is not known: left out",
                                   "system call 'future' is not known to libseccomp: left out"));
}

TEST_F(MakeSteps, JoinsNamespaces) {
  auto first = MakeOf({.top = R"("hostname": "joined")", .script = "exec sleep 1000"});
  // Namespaces are there at the gate.
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const std::string of = "/proc/" + std::to_string(first->pid()) + "/ns/";
  const std::string joined = R"([{"type": "mount"}, {"type": "pid", "path": ")" + of +
                             R"(pid"}, {"type": "uts", "path": ")" + of +
                             R"(uts"}, {"type": "ipc", "path": ")" + of + R"(ipc"}])";
  EXPECT_EQ(bundle_.Run({.script = "hostname; echo $$", .namespaces = joined}),
            "joined\n2\nexit 0");
}

TEST_F(MakeSteps, JoinsAUserNamespaceLast) {
  const Config config{
      .linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 2000}],
                       "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 2000}])",
      .script = ":",
      .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"},
                        {"type": "network"}, {"type": "user"}])",
      .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"})"};
  auto first = MakeOf(config);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const std::string of = "/proc/" + std::to_string(first->pid()) + "/ns/";
  Config second = config;
  second.linux_part.clear();
  second.script = "cat /proc/1/uid_map; id -u";
  second.namespaces = R"([{"type": "mount"}, {"type": "pid"}, {"type": "network", "path": ")" + of +
                      R"(net"}, {"type": "user", "path": ")" + of + R"(user"}])";
  EXPECT_EQ(bundle_.Run(second), "         0     100000       2000\n0\nexit 0");
}

// What `work` says in a process that is root of a user namespace with the ids up to 65535, which it
// entered before, and of nothing else.
std::string InsideAUserNamespace(const std::function<std::string()>& work) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte = 0;
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || ::write(there.get(), "u", 1) != 1 ||
        ::read(there.get(), &byte, 1) != 1) {
      ::_exit(1);
    }
    const std::string said = work();
    const bool told = ::write(there.get(), said.data(), said.size()) >= 0;
    ::_exit(told ? 0 : 1);
  }
  there.reset();
  char byte = 0;
  EXPECT_EQ(::read(here.get(), &byte, 1), 1);
  for (const char* const map : {"gid_map", "uid_map"}) {
    std::ofstream("/proc/" + std::to_string(pid) + "/" + map) << "0 0 65536\n";
  }
  EXPECT_EQ(::write(here.get(), "g", 1), 1);
  const std::string said = Drain(here.get());
  EXPECT_EQ(EndOf(pid), "exit 0");
  return said;
}

TEST_F(MakeSteps, WorksInsideAUserNamespace) {
  const Config config{
      .process = R"("noNewPrivileges": true, "capabilities": {"bounding": ["CAP_KILL"],
                    "permitted": ["CAP_KILL"], "effective": ["CAP_KILL"]})",
      .linux_part = R"("sysctl": {"kernel.msgmax": "4321"}, "seccomp": {
                       "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                         {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]})",
      .top = R"("hostname": "inner")",
      .script =
          "hostname; cat /proc/sys/kernel/msgmax; id -u; echo >/dev/null && pwd; "
          "grep CapBnd: /proc/1/status; mkdir /x 2>/dev/null || echo filtered",
      .cwd = "/made",
      .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"})",
      .user = R"({"uid": 1000, "gid": 1000})"};
  EXPECT_EQ(InsideAUserNamespace([&] { return bundle_.Run(config); }),
            "inner\n4321\n1000\n/made\nCapBnd:\t0000000000000020\nfiltered\nexit 0");
}

TEST_F(MakeSteps, MakesAUserNamespaceInsideAUserNamespace) {
  const Config config{
      .linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 5000, "size": 2000}],
                       "gidMappings": [{"containerID": 0, "hostID": 5000, "size": 2000}])",
      .script = "cat /proc/1/uid_map; id -u",
      .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "user"}])",
      .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"})",
      .user = R"({"uid": 7, "gid": 8})"};
  EXPECT_EQ(InsideAUserNamespace([&] { return bundle_.Run(config); }),
            "         0       5000       2000\n7\nexit 0");
}

struct Refusal {
  const char* name;
  Config config;
  const char* error;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class MakeRefuses : public MakeSteps, public testing::WithParamInterface<Refusal> {};

TEST_P(MakeRefuses, AndSaysWhatFailed) {
  EXPECT_THAT(bundle_.Run(GetParam().config), HasSubstr(GetParam().error));
  EXPECT_TRUE(HasNoChild());
}

INSTANTIATE_TEST_SUITE_P(
    Steps, MakeRefuses,
    testing::Values(
        Refusal{"SysctlOfTheNode",
                {.linux_part = R"("sysctl": {"vm.swappiness": "1"})"},
                "INVALID_ARGUMENT: set sysctl 'vm.swappiness': no namespace has it of its own"},
        Refusal{"SysctlWithoutNamespace",
                {.linux_part = R"("sysctl": {"net.ipv4.ip_forward": "1"})"},
                "INVALID_ARGUMENT: set sysctl 'net.ipv4.ip_forward': the container has no network"},
        Refusal{"SysctlByDots",
                {.linux_part = R"("sysctl": {"net/../vm/swappiness": "1"})"},
                "INVALID_ARGUMENT: set sysctl 'net/../vm/swappiness': no namespace has it"},
        Refusal{"SysctlOfTheMakersNamespace",
                {.linux_part = R"("sysctl": {"net.ipv4.ip_forward": "1"})",
                 .namespaces = R"([{"type": "mount"}, {"type": "pid"},
                                   {"type": "network", "path": "/proc/self/ns/net"}])"},
                "INVALID_ARGUMENT: set sysctl 'net.ipv4.ip_forward': the container has no network"},
        Refusal{"SysctlThatIsNone",
                {.linux_part = R"("sysctl": {"fs.mqueue.none": "1"})"},
                "NOT_FOUND: set sysctl 'fs.mqueue.none': open '/proc/sys/fs/mqueue/none': ENOENT"},
        Refusal{"HostnameOfTheNode",
                {.top = R"("hostname": "x")", .namespaces = R"([{"type": "mount"}])"},
                "INVALID_ARGUMENT: set the host name 'x': the container has no uts namespace"},
        Refusal{
            "LongHostname",
            {.top = R"("hostname": "12345678901234567890123456789012345678901234567890123456789)"
                    R"(012345")"},
            ": EINVAL"},
        Refusal{"NoMountNamespace",
                {.namespaces = R"([{"type": "pid"}])"},
                "INVALID_ARGUMENT: make a container: it has a root and no new mount namespace"},
        Refusal{
            "NamespaceOfAnotherKind",
            {.namespaces = R"([{"type": "mount"}, {"type": "uts", "path": "/proc/self/ns/net"}])"},
            "INVALID_ARGUMENT: join uts namespace '/proc/self/ns/net': it is one of another kind"},
        Refusal{"NamespaceThatIsNone",
                {.namespaces = R"([{"type": "mount"}, {"type": "uts", "path": "/etc/hostname"}])"},
                "INVALID_ARGUMENT: join uts namespace '/etc/hostname': it is no namespace"},
        Refusal{"NamespaceThatIsNotThere",
                {.namespaces = R"([{"type": "mount"}, {"type": "uts", "path": "/none"}])"},
                "NOT_FOUND: open uts namespace '/none': ENOENT"},
        Refusal{"UserNamespaceWithoutMaps",
                {.namespaces = R"([{"type": "mount"}, {"type": "user"}])"},
                "INVALID_ARGUMENT: make a container: a new user namespace without uidMappings"},
        Refusal{"OverlappingMaps",
                {.linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 1, "size": 9},
                                  {"containerID": 5, "hostID": 100, "size": 9}],
                                  "gidMappings": [{"containerID": 0, "hostID": 1, "size": 9}])",
                 .namespaces = R"([{"type": "mount"}, {"type": "user"}])"},
                "/uid_map': EINVAL"},
        Refusal{"UnmappedUser",
                {.linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 9}],
                                  "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 9}])",
                 .namespaces = R"([{"type": "mount"}, {"type": "pid"}, {"type": "user"}])",
                 .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"})",
                 .user = R"({"uid": 10, "gid": 0})"},
                "become user 10: EINVAL"},
        Refusal{"OffsetsWithoutNamespace",
                {.linux_part = R"("timeOffsets": {"boottime": {"secs": 1}})"},
                "INVALID_ARGUMENT: make a container: timeOffsets without a new time namespace"},
        Refusal{"AmbientNotPermitted",
                {.process = R"("capabilities": {"ambient": ["CAP_KILL"]})"},
                "raise ambient capability 5: it has to be inheritable and permitted"},
        Refusal{"EffectiveNotPermitted",
                {.process = R"("capabilities": {"bounding": ["CAP_KILL"],
                                                "effective": ["CAP_KILL"]})"},
                "set the capabilities: effective 0x20 has to be within permitted 0x0"},
        Refusal{"UnknownProfile",
                {.process = R"("apparmorProfile": "none-such")"},
                "AppArmor profile 'none-such'"},
        Refusal{
            "UnknownArchitecture",
            {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW",
                                              "architectures": ["SCMP_ARCH_VAX"]})"},
            "INVALID_ARGUMENT: make the filter of linux.seccomp: architectures: 'SCMP_ARCH_VAX'"},
        Refusal{"UnknownSeccompFlag",
                {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "flags": ["X"]})"},
                "INVALID_ARGUMENT: make the filter of linux.seccomp: flags: 'X' is not known"},
        Refusal{"NotifyOfTheHandOver",
                {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                                  {"names": ["sendmsg"], "action": "SCMP_ACT_NOTIFY"}]})"},
                "INVALID_ARGUMENT: make the filter of linux.seccomp: syscalls: SCMP_ACT_NOTIFY"},
        Refusal{"TerminalWithoutDevpts",
                {.process = R"("terminal": true)"},
                "open '/dev/pts/ptmx' for the terminal"},
        Refusal{
            "CwdIsAFile", {.cwd = "/etc/passwd"}, "make working directory '/etc/passwd': ENOTDIR"},
        Refusal{"RaisedLimit",
                {.process = R"("rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1,
                                            "hard": 18446744073709551615}])"},
                "PERMISSION_DENIED: set resource limit 7 to 1:18446744073709551615: EPERM"}),
    [](const auto& refusal) { return std::string(refusal.param.name); });

// What the root of a container may hold to get more than its maker means to give.
class MakeAttack : public MakeSteps {
 protected:
  void Link(const std::string& target, const std::string& path) {
    ASSERT_EQ(::symlink(target.c_str(), bundle_.InRoot(path).c_str()), 0);
  }
};

TEST_F(MakeAttack, CwdByAMagicLinkLeadsNowhere) {
  // In the node's pid namespace, where other processes have the node's root.
  const std::string root = "/proc/" + std::to_string(::getpid()) + "/root";
  EXPECT_THAT(bundle_.Run({.script = "pwd",
                           .namespaces = R"([{"type": "mount"}])",
                           .cwd = root + bundle_.path() + "/outside"}),
              HasSubstr("make working directory '" + root + "': ELOOP"));
  EXPECT_FALSE(Exists(bundle_.path() + "/outside"));
}

TEST_F(MakeAttack, CwdByADescriptorLeadsNowhere) {
  for (int fd = 3; fd < 12; ++fd) {
    const std::string cwd = "/proc/self/fd/" + std::to_string(fd);
    EXPECT_THAT(bundle_.Run({.script = "pwd", .cwd = cwd}),
                testing::AnyOf(HasSubstr("ELOOP"), HasSubstr("ENOENT"), HasSubstr("ENOTDIR")))
        << cwd;
  }
}

TEST_F(MakeAttack, CwdByALinkStaysInTheRoot) {
  Link("../../../../../../gantry-made-by-a-link", "/out");
  EXPECT_THAT(bundle_.Run({.script = "pwd", .cwd = "/out/sub"}),
              testing::AnyOf(HasSubstr("ENOENT"), HasSubstr("/gantry-made-by-a-link")));
  EXPECT_FALSE(Exists("/gantry-made-by-a-link"));
}

TEST_F(MakeAttack, PasswdMayBeAnything) {
  ASSERT_EQ(::unlink(bundle_.InRoot("/etc/passwd").c_str()), 0);
  ASSERT_EQ(::mkfifo(bundle_.InRoot("/etc/passwd").c_str(), 0666), 0);
  EXPECT_EQ(bundle_.Run({.script = "echo $HOME"}), "/\nexit 0");
  ASSERT_EQ(::unlink(bundle_.InRoot("/etc/passwd").c_str()), 0);
  Link("/proc/1/root/etc/passwd", "/etc/passwd");
  EXPECT_EQ(bundle_.Run({.script = "echo $HOME", .namespaces = R"([{"type": "mount"}])"}),
            "/\nexit 0");
}

TEST_F(MakeAttack, ProgramIsExecutedWithTheRightsOfItsUser) {
  ASSERT_EQ(::chmod(bundle_.InRoot("/bin/busybox").c_str(), 0700), 0);
  EXPECT_THAT(bundle_.Run({.script = ":", .user = R"({"uid": 1000, "gid": 1000})"}),
              HasSubstr("PERMISSION_DENIED: execute '/bin/sh': EACCES"));
}

TEST_F(MakeAttack, ProgramIsThatOfTheRoot) {
  ASSERT_EQ(::unlink(bundle_.InRoot("/bin/sh").c_str()), 0);
  EXPECT_THAT(bundle_.Run({.script = ":"}),
              HasSubstr("NOT_FOUND: execute 'sh': not found in PATH '/bin'"));
}

TEST_F(MakeAttack, ProgramThatIsNoneSaysSoAtItsStart) {
  std::ofstream(bundle_.InRoot("/bin/broken")) << "\x7f"
                                                  "ELF no program";
  ASSERT_EQ(::chmod(bundle_.InRoot("/bin/broken").c_str(), 0755), 0);
  ASSERT_EQ(::unlink(bundle_.InRoot("/bin/sh").c_str()), 0);
  Link("broken", "/bin/sh");
  EXPECT_THAT(bundle_.Run({.script = ":"}), HasSubstr("execute '/bin/sh': ENOEXEC"));
  EXPECT_TRUE(HasNoChild());
}

TEST_F(MakeAttack, FakePtmxIsNotOpened) {
  ASSERT_EQ(::mkdir(bundle_.InRoot("/dev/pts").c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo(bundle_.InRoot("/dev/pts/ptmx").c_str(), 0666), 0);
  EXPECT_THAT(
      bundle_.Run({.process = R"("terminal": true)", .script = ":"}),
      HasSubstr("FAILED_PRECONDITION: open '/dev/pts/ptmx' for the terminal: it is not of"));
}

}  // namespace
}  // namespace gantry::container
