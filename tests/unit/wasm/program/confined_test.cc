// SPDX-License-Identifier: Apache-2.0
//
// What the process of a guest has of the node, and what a guest that has broken out of its engine
// could do with it.
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/wasm/program/guest_fixture.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using ConfinedTest = GuestTest;

constexpr const char* kAllOfTwo =
    R"("capabilities": {"bounding": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_KILL", "CAP_CHOWN"],
       "effective": ["CAP_KILL"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]})";
constexpr const char* kOfUserNamespace =
    R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "user"}])";
constexpr const char* kMappings =
    R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}],
       "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 65536}])";

std::string Call(long number, const std::vector<long>& arguments = {}) {
  std::string line = "call " + std::to_string(number);
  for (const long one : arguments) {
    line += " " + std::to_string(one);
  }
  return line + "\n";
}

std::string Errno(int number) { return Format("errno {}\n", number); }

// What ends the process is SIGSYS.
constexpr const char* kEnded = "exit 159";

TEST_F(ConfinedTest, HasNoRightsAndOneThread) {
  const auto has_none = AllOf(
      HasSubstr(
          "\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
          "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"),
      HasSubstr("\nThreads:\t1\n"), HasSubstr("\nSeccomp_filters:\t1\n"));
  EXPECT_THAT(Run("read /proc/self/status", {.process = kAllOfTwo}), has_none);
  EXPECT_THAT(Run("read /proc/self/status",
                  {.process = kAllOfTwo, .linux_part = kMappings, .namespaces = kOfUserNamespace}),
              has_none);
}

TEST_F(ConfinedTest, HasNoDescriptorButItsStreams) {
  EXPECT_EQ(Run("descriptors"), " 0 1 2\nexit 0");
}

TEST_F(ConfinedTest, IsNobodysToLookInto) {
  // The file of a process that may be looked into is its user's.
  EXPECT_EQ(Run("read /proc/self/auxv", {.user = R"({"uid": 1000, "gid": 1000})"}),
            Errno(EACCES) + "exit 0");
}

TEST_F(ConfinedTest, IsInTheRootAndItsProcesses) {
  EXPECT_EQ(Run("read /etc/passwd\nread /proc/1/comm\ncall " + std::to_string(SYS_getpid)),
            "other:x:7:7::/other:/bin/sh\nu:x:77:7::/home/of77:/bin/sh\ngantry-wasm\n"
            "success\nexit 0");
}

TEST_F(ConfinedTest, HasNoExecutableMemory) {
  constexpr long kPage = 4096;
  EXPECT_EQ(Run(Call(SYS_mmap, {0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS})),
            "success\nexit 0");
  EXPECT_EQ(Run(Call(SYS_mmap, {0, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS})),
            kEnded);
  EXPECT_EQ(Run(Call(SYS_mprotect, {0, kPage, PROT_EXEC})), kEnded);
  EXPECT_EQ(Run(Call(SYS_pkey_mprotect, {0, kPage, PROT_EXEC, -1})), kEnded);
}

TEST_F(ConfinedTest, EndsWhoHasBrokenOut) {
  for (const long number :
       {SYS_execve, SYS_execveat, SYS_clone, SYS_clone3, SYS_ptrace, SYS_mount, SYS_bpf,
        SYS_unshare, SYS_setns, SYS_process_vm_writev, SYS_seccomp, SYS_io_uring_setup,
        SYS_memfd_create, SYS_personality, SYS_keyctl, SYS_setresuid}) {
    EXPECT_EQ(Run(Call(number)), kEnded) << number;
  }
}

TEST_F(ConfinedTest, DoesNotKnowTheRest) {
  for (const long number : {SYS_prctl, SYS_getrusage, SYS_prlimit64, SYS_msgget, 5000}) {
    EXPECT_EQ(Run(Call(number)), Errno(ENOSYS) + "exit 0") << number;
  }
  constexpr long kStealInput = 0x5412;  // TIOCSTI
  constexpr long kSetOwner = 8;         // F_SETOWN
  EXPECT_EQ(Run(Call(SYS_ioctl, {0, kStealInput}) + Call(SYS_fcntl, {0, kSetOwner, 1})),
            Errno(ENOTTY) + Errno(EINVAL) + "exit 0");
}

TEST_F(ConfinedTest, SignalsNobodyElse) {
  EXPECT_EQ(Run(Call(SYS_tgkill, {1, 1, 0}) + Call(SYS_tgkill, {2, 2, 0})),
            "success\n" + Errno(EPERM) + "exit 0");
}

TEST_F(ConfinedTest, HasSocketsWhereItMay) {
  const std::string tcp = Call(SYS_socket, {AF_INET, SOCK_STREAM, 0});
  const std::string unix = Call(SYS_socket, {AF_UNIX, SOCK_STREAM, 0});
  const std::string raw = Call(SYS_socket, {AF_PACKET, SOCK_RAW, 0});
  const std::string refused = Errno(EPERM);
  EXPECT_EQ(Run(tcp + unix + raw, {}, {"--kind=command"}),
            "success\n" + refused + refused + "exit 0");
  EXPECT_EQ(Run(tcp, {}, {"--kind=command", "--network=none"}), refused + "exit 0");
  EXPECT_EQ(Run(tcp), refused + "exit 0") << "no module knows any";
  const std::string use =
      Call(SYS_connect, {0, 0, 0}) + Call(SYS_accept4, {0, 0, 0, 0}) + Call(SYS_sendto, {0, 0, 0});
  EXPECT_EQ(Run(use), refused + refused + refused + "exit 0");
  const std::string none = Errno(ENOTSOCK);
  EXPECT_EQ(Run(use, {}, {"--kind=command"}), none + none + none + "exit 0");
}

TEST_F(ConfinedTest, AProxyWithoutNetworkAnswersAndAsksNobody) {
  const container::Config config = {
      .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "network"}])"};
  EXPECT_EQ(Run(Call(SYS_socket, {AF_INET, SOCK_STREAM, 0}) + Call(SYS_connect, {3, 0, 0}) +
                    Call(SYS_accept4, {3, 0, 0, 0}),
                config, {"--kind=proxy", "--network=none"}),
            Errno(EPERM) + Errno(EPERM) + Errno(EAGAIN) + "exit 0");
}

TEST_F(ConfinedTest, IsUnderTheFilterOfTheSpecToo) {
  const container::Config config = {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW",
                       "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
                       {"names": ["getpid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 9}]})"};
  EXPECT_EQ(Run(Call(SYS_getpid) + Call(SYS_gettid), config), Errno(EBADF) + "success\nexit 0");
  EXPECT_THAT(Run("read /proc/self/status", config), HasSubstr("\nSeccomp_filters:\t2\n"));
  // With the flags that it was let through with, and no others.
  EXPECT_EQ(Run(Call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, 0}), config),
            Errno(EFAULT) + "exit 0");
  EXPECT_EQ(Run(Call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, 0}), config), kEnded);
  EXPECT_EQ(Run(Call(SYS_seccomp, {SECCOMP_GET_ACTION_AVAIL, SECCOMP_FILTER_FLAG_LOG, 0}), config),
            kEnded);
}

TEST_F(ConfinedTest, CannotWriteWhatIsMountedForReading) {
  const container::Config config = {
      .mounts =
          R"({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["ro"]})"};
  EXPECT_EQ(Run("write /file\nwrite /tmp/file", config), "success\n" + Errno(EROFS) + "exit 0");
}

TEST_F(ConfinedTest, HasATerminal) {
  GuestProcess guest(sandbox_);
  GatedRequest request =
      RequestOf({.process = R"("terminal": true)",
                 .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                    {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                     "options": ["newinstance", "ptmxmode=0666"]})"});
  request.terminal = true;
  guest.context().stdio.terminal = true;
  constexpr long kGetSize = 0x5413;  // TIOCGWINSZ
  const Status made = guest.Make(
      std::move(request), "say within\n" + Call(SYS_ioctl, {0, kGetSize}), {"--kind=module"});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(guest.Open());
  EXPECT_EQ(guest.End(), 0U);
  EXPECT_EQ(ReadStream(guest.context().console), "within\r\n" + std::string("errno 14\r\n"));
}

TEST_F(ConfinedTest, AnExecIsInTheSameNamespacesWithRightsOfItsOwn) {
  const auto init = Made("say up\nwait", {.top = R"("hostname": "within")"});
  ASSERT_TRUE(init->Open());
  ASSERT_EQ(init->Output("up\n"), "up\n");
  GuestProcess exec(sandbox_, "x1");
  GatedRequest request = RequestOf({.top = R"("hostname": "within")"});
  request.init = init->host();
  request.process_json = container::Bundle::ProcessOf({.process = kAllOfTwo, .cwd = "/tmp"});
  const Status made = exec.Make(
      std::move(request),
      "read /proc/sys/kernel/hostname\nrequest\nread /proc/self/status\ndescriptors\nexit 5",
      {"--kind=module"});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(exec.Open());
  const std::string seen = exec.Rest();
  EXPECT_THAT(seen, AllOf(StartsWith("within\n"), HasSubstr("directory / at / rw\n"),
                          HasSubstr("env PWD=/tmp\n"), HasSubstr("CapEff:\t0000000000000000\n"),
                          HasSubstr("Seccomp:\t2\n"), HasSubstr("\n 0 1 2\nexit 5")));
  EXPECT_FALSE(init->host()->Ended());
  init->Signal(SIGTERM);
  EXPECT_EQ(init->End(), 143U);
}

}  // namespace
}  // namespace gantry::wasm
