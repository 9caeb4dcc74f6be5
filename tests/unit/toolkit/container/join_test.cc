// SPDX-License-Identifier: Apache-2.0
//
// A process that joins a container of crun's: each field of its `process` object seen from inside,
// by the library and by `crun exec`, which see the same; what is refused, and how it is said.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/toolkit/container/running.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// What a process can see of itself, and of where it is.
constexpr const char* kLookAboutInside =
    "p=/proc/$$\n"
    "while read -r key rest; do case $key in "
    "Umask:|[UG]id:|Groups:|SigIgn:|SigBlk:|Cap*|NoNewPrivs:|"
    "Seccomp:|Cpus_allowed_list:) echo $key $rest;; esac; done <$p/status; echo $p/fd/*\n"
    "cat $p/limits $p/oom_score_adj $p/cgroup $p/personality\n"
    "hostname; pwd; env | sort; uname -m; id\n"
    "for n in cgroup ipc mnt net pid time user uts; do readlink $p/ns/$n; done\n"
    "stat -L -c '%F %a %u' $p/fd/0 $p/fd/1\n";

struct JoinedField {
  const char* name;
  Config container;
  Config process;
  /// What is seen.
  const char* seen;
  bool by_crun_too = true;
};

// crun 1.21 sets the OOM score of an init, not of an exec.
constexpr bool kOnlyHere = false;

void PrintTo(const JoinedField& field, std::ostream* out) { *out << field.name; }

class JoinField : public testing::TestWithParam<JoinedField> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  Bundle bundle_;
};

TEST_P(JoinField, IsSeenFromInsideAndAsCrunHasIt) {
  const Running running(bundle_, GetParam().container);
  Config process = GetParam().process;
  process.script = kLookAboutInside + process.script;
  // The numbers of processes in the container are not alike.
  const std::string here = running.Join(process);
  EXPECT_THAT(here, HasSubstr(GetParam().seen));
  EXPECT_THAT(here, HasSubstr("exit 0"));
  const auto without_number = [](std::string text) {
    for (size_t at = 0; (at = text.find("/proc/", at)) != text.npos; ++at) {
      text.erase(at + 6, text.find('/', at + 6) - at - 6);
    }
    return text;
  };
  if (GetParam().by_crun_too) {
    EXPECT_EQ(without_number(here), without_number(running.JoinByCrun(process)));
  }
}

const char* const kTwoCapabilities =
    R"("capabilities": {"bounding": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_KILL", "CAP_CHOWN"],
       "effective": ["CAP_KILL"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]})";

const char* const kUserNamespace =
    R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "network"},
        {"type": "cgroup"}, {"type": "user"}])";

INSTANTIATE_TEST_SUITE_P(
    Process, JoinField,
    testing::Values(
        JoinedField{"Nothing", {}, {}, "CapBnd: 0000000000000000\n"},
        JoinedField{"User",
                    {},
                    {.user = R"({"uid": 1000, "gid": 100, "additionalGids": [5, 6], "umask": 63})"},
                    "Uid: 1000 1000 1000 1000\nGid: 100 100 100 100\nGroups: 5 6\n"},
        JoinedField{
            "Capabilities", {}, {.process = kTwoCapabilities}, "CapBnd: 0000000000000021\n"},
        JoinedField{"CapabilitiesOfTheContainer",
                    {.process = kTwoCapabilities},
                    {},
                    "CapBnd: 0000000000000021\n"},
        JoinedField{
            "NoNewPrivileges", {}, {.process = R"("noNewPrivileges": true)"}, "NoNewPrivs: 1\n"},
        JoinedField{
            "Rlimits",
            {},
            {.process = R"("rlimits": [{"type": "RLIMIT_NOFILE", "soft": 99, "hard": 199}])"},
            "Max open files            99                   199                  files"},
        JoinedField{"OomScore", {}, {.process = R"("oomScoreAdj": 123)"}, "\n123\n", kOnlyHere},
        JoinedField{"WorkingDirectory", {}, {.cwd = "/tmp"}, "\n/tmp\n"},
        JoinedField{"FinalCpus",
                    {},
                    {.process = R"("execCPUAffinity": {"initial": "0-1", "final": "0"})"},
                    "Cpus_allowed_list: 0\n"},
        JoinedField{"Names", {.top = R"("hostname": "within")"}, {}, "\nwithin\n"},
        JoinedField{"Seccomp",
                    {.linux_part = R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                 {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]})"},
                    {.script = "mkdir /x 2>&1 || true"},
                    "Function not implemented"},
        JoinedField{
            "UserNamespace",
            {.linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 2000}],
                 "gidMappings": [{"containerID": 0, "hostID": 200000, "size": 2000}])",
             .namespaces = kUserNamespace,
             .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                             "options": ["mode=755"]})"},
            {.script = "cat $p/uid_map $p/gid_map",
             .user = R"({"uid": 1000, "gid": 1000, "additionalGids": [5]})"},
            "         0     200000       2000\n"}),
    [](const auto& field) { return std::string(field.param.name); });

class JoinTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  Bundle bundle_;
};

TEST_F(JoinTest, IsInTheCgroupsOfTheInit) {
  const Running running(bundle_, {});
  const std::string file = "/proc/" + std::to_string(running.init()) + "/cgroup";
  const std::string cgroups = ReadFile(file, 64 << 10).value_or("nothing");
  // Else this test could not fail.
  ASSERT_NE(cgroups, ReadFile("/proc/self/cgroup", 64 << 10).value_or("nothing"));
  EXPECT_EQ(running.Join({.script = "cat /proc/self/cgroup"}), cgroups + "exit 0");
}

TEST_F(JoinTest, HasTheContainersCpusBehindItsFirstOnes) {
  const Running running(bundle_, {});
  const std::string all = running.Join({.script = "grep Cpus_allowed_list: /proc/self/status"});
  EXPECT_EQ(running.Join({.process = R"("execCPUAffinity": {"initial": "0"})",
                          .script = "grep Cpus_allowed_list: /proc/self/status"}),
            all);
  EXPECT_EQ(running.Join({.process = R"("execCPUAffinity": {"final": "0"})",
                          .script = "grep Cpus_allowed_list: /proc/self/status"}),
            "Cpus_allowed_list:\t0\nexit 0");
}

TEST_F(JoinTest, HasATerminalOfTheContainers) {
  const Running running(bundle_,
                        {.mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                             {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                              "options": ["newinstance", "ptmxmode=0666"]})"});
  auto request = running.RequestOf(
      {.process = R"("terminal": true, "consoleSize": {"height": 12, "width": 34})",
       .script = "tty; stty size"});
  ASSERT_TRUE(request.has_value()) << request.error().message;
  auto made = Join(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const UniqueFd console = made->TakeConsole();
  ASSERT_TRUE(static_cast<bool>(console));
  ASSERT_TRUE(made->Start());
  EXPECT_EQ(Drain(console.get()), "/dev/pts/0\r\n12 34\r\n");
  EXPECT_EQ(EndOf(made->pid()), "exit 0");
}

TEST_F(JoinTest, ChangesNothingOfTheContainer) {
  const Running running(bundle_, {.top = R"("hostname": "within")"});
  auto request = running.RequestOf({.script = "hostname; cat /proc/self/mountinfo"});
  ASSERT_TRUE(request.has_value());
  const std::string before = running.Join({.script = "cat /proc/1/mountinfo"});
  request->spec.hostname = "other";
  request->spec.linux_spec.sysctl["kernel.msgmax"] = "1";
  auto made = Join(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_TRUE(made->Start());
  EXPECT_EQ(EndOf(made->pid()), "exit 0");
  EXPECT_EQ(running.Join({.script = "hostname"}), "within\nexit 0");
  EXPECT_EQ(running.Join({.script = "cat /proc/1/mountinfo"}), before);
}

TEST_F(JoinTest, HasNothingOfItsMakersAtTheGate) {
  const Running running(bundle_, {});
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY));  // Without CLOEXEC.
  ASSERT_TRUE(static_cast<bool>(secret));
  auto request = running.RequestOf({.script = ":", .user = R"({"uid": 1000, "gid": 1000})"});
  ASSERT_TRUE(request.has_value());
  const auto made = Join(*request);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const std::string folder = "/proc/" + std::to_string(made->pid());
  // Its streams, and the socket to its maker.
  std::vector<std::string> held;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    held.push_back(std::filesystem::read_symlink(entry).string());
  }
  EXPECT_THAT(held,
              UnorderedElementsAre("/dev/null", "/dev/null", "/dev/null", StartsWith("socket:")));
  // Files of a process that nobody may look into belong to root, whoever it is.
  struct stat about{};
  ASSERT_EQ(::stat((folder + "/environ").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0U);
}

TEST_F(JoinTest, SaysWhatFailed) {
  const Running running(bundle_, {});
  EXPECT_THAT(running.Join({.cwd = "/absent"}), StartsWith("NOT_FOUND: "));
  EXPECT_THAT(running.Join({.process = R"("execCPUAffinity": {"initial": "1-0"})"}),
              "INVALID_ARGUMENT: process.execCPUAffinity.initial '1-0': not a list of CPUs, as "
              "0-3,7 is");
  EXPECT_THAT(running.Join({.process = R"("execCPUAffinity": {"final": "8191"})"}),
              StartsWith("INVALID_ARGUMENT: set process.execCPUAffinity.final: none of these"));
  auto request = running.RequestOf({.script = ":"});
  ASSERT_TRUE(request.has_value());
  request->process.args = {"no-such-program"};
  auto made = Join(*request);
  const Status started = made ? made->Start() : Status(std::unexpected(made.error()));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kNotFound);
  EXPECT_THAT(started.error().message, HasSubstr("'no-such-program'"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "nothing is left of them";
}

TEST_F(JoinTest, NeedsTheInitToBeThere) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  const UniqueFd init(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  JoinRequest request;
  request.process.args = {"sh"};
  request.process.cwd = "/";
  request.init = init.get();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  // Ended, and not collected: its number is its own still.
  pollfd ended{.fd = init.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, -1), 1);
  EXPECT_EQ(Join(request).error().code, Code::kNotFound);
  EXPECT_EQ(EndOf(pid), "signal 9");
  EXPECT_EQ(Join(request).error().code, Code::kNotFound);
  request.init = 0;
  EXPECT_EQ(Join(request).error().code, Code::kInvalidArgument) << "no pidfd at all";
}

}  // namespace
}  // namespace gantry::container
