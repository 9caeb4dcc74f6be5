// SPDX-License-Identifier: Apache-2.0
//
// Each field of config.json that is about the process, seen from inside; and the same config.json
// given to runc and crun, whose containers see the same.
#include <sys/stat.h>
#include <unistd.h>

#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;
using testing::Not;

// All that a process can see of itself that config.json says, or that must not come from its maker.
constexpr const char* kLookAbout =
    "while read -r key rest; do case $key in Umask:|?id:|Groups:|SigIgn:|SigBlk:|Cap*|NoNewPrivs:|"
    "Seccomp:) echo $key $rest;; esac; done </proc/1/status; echo /proc/1/fd/*\n"
    "cat /proc/1/limits /proc/1/oom_score_adj /proc/sys/kernel/domainname /proc/sys/kernel/msgmax\n"
    "hostname; pwd; env | sort; uname -m; id\n"
    "cut -d' ' -f5,6,40,41 /proc/1/stat; cut -d' ' -f18,19 /proc/1/stat\n"
    "cat /proc/1/personality /proc/self/timens_offsets\n"
    "stat -c '%a %u %g' .; stat -L -c '%F %a %u' /proc/1/fd/0 /proc/1/fd/1\n";

struct Field {
  const char* name;
  Config config;
  /// What is seen.
  const char* seen;
  /// Of runc and crun, those that see the same; both, unless they do not know the field.
  bool runc = true;
  bool crun = true;
};

// Debian's runc, 1.1, knows the time namespace, the scheduler, the personality and the domain name
// no more than the specification of its time did.
constexpr bool kNotRunc = false;
// It sets the scheduler when the process has lost the right to it.
constexpr bool kNotCrun = false;

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

class MakeField : public testing::TestWithParam<Field> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  Bundle bundle_;
};

TEST_P(MakeField, IsSeenFromInsideAndAsOtherRuntimesHaveIt) {
  Config config = GetParam().config;
  config.script = kLookAbout + config.script;
  const std::string here = bundle_.Run(config);
  EXPECT_THAT(here, HasSubstr(GetParam().seen));
  EXPECT_THAT(here, HasSubstr("exit 0"));
  if (GetParam().runc) {
    EXPECT_EQ(here, bundle_.RunBy("runc", config)) << "by runc";
  }
  if (GetParam().crun) {
    EXPECT_EQ(here, bundle_.RunBy("crun", config)) << "by crun";
  }
}

const char* const kCapabilities =
    R"("capabilities": {"bounding": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_KILL", "CAP_CHOWN"],
       "effective": ["CAP_KILL"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]})";

// As far as the filter of the tests goes: what a shell needs is allowed by its default.
const char* const kFilter =
    R"("seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
       "syscalls": [{"names": ["mkdir", "mkdirat", "no_such_call"], "action": "SCMP_ACT_ERRNO",
                     "errnoRet": 38}]})";

INSTANTIATE_TEST_SUITE_P(
    Process, MakeField,
    testing::Values(
        Field{"Nothing", {}, "CapBnd: 0000000000000000\n"},
        Field{"User",
              {.user = R"({"uid": 1000, "gid": 100, "additionalGids": [5, 6], "umask": 63})"},
              "Uid: 1000 1000 1000 1000\nGid: 100 100 100 100\nGroups: 5 6\n"},
        Field{"Umask", {.user = R"({"uid": 0, "gid": 0, "umask": 63})"}, "Umask: 0077\n"},
        Field{"Capabilities", {.process = kCapabilities}, "CapBnd: 0000000000000021\n"},
        Field{"CapabilitiesOfAUser",
              {.process = kCapabilities, .user = R"({"uid": 1000, "gid": 1000})"},
              "CapPrm: 0000000000000020\nCapEff: 0000000000000020\n"},
        Field{"NoNewPrivileges", {.process = R"("noNewPrivileges": true)"}, "NoNewPrivs: 1\n"},
        Field{"Rlimits",
              {.process = R"("rlimits": [{"type": "RLIMIT_NOFILE", "soft": 99, "hard": 199},
                 {"type": "RLIMIT_CORE", "soft": 0, "hard": 18446744073709551615}])"},
              "Max open files            99                   199                  files"},
        // Who makes it may not have CAP_SYS_RESOURCE.
        Field{"RlimitsOfAUser",
              {.process = R"("rlimits": [{"type": "RLIMIT_NOFILE", "soft": 99, "hard": 199}])",
               .user = R"({"uid": 1000, "gid": 1000})"},
              "Max open files            99                   199                  files"},
        Field{"OomScore", {.process = R"("oomScoreAdj": 123)"}, "\n123\n"},
        Field{"WorkingDirectoryIsMade",
              {.script = "stat -c %a /made", .cwd = "/made/here"},
              "\n/made/here\n"},
        Field{"WorkingDirectoryOfRootOnly",
              {.script = "pwd", .cwd = "/made", .user = R"({"uid": 1000, "gid": 1000})"},
              "\n755 0 0\n"},
        Field{"HomeOfPasswd",
              {.script = "echo $HOME", .user = R"({"uid": 77, "gid": 0})"},
              "\nHOME=/home/of77\n"},
        Field{"Hostname", {.top = R"("hostname": "within")"}, "\nwithin\n"},
        Field{
            "DomainName", {.top = R"("domainname": "domain.within")"}, "domain.within\n", kNotRunc},
        Field{"Sysctl", {.linux_part = R"("sysctl": {"kernel.msgmax": "4321"})"}, "\n4321\n"},
        Field{"Personality",
              {.linux_part = R"("personality": {"domain": "LINUX32"})"},
              "\ni686\n",
              kNotRunc},
        Field{"Scheduler",
              {.process = R"("scheduler": {"policy": "SCHED_FIFO", "priority": 7})"},
              // Not its nice value: that is the one this test runs with.
              "1 1 7 1\n-8 ",
              kNotRunc,
              kNotCrun},
        Field{"Nice",
              {.process = R"("scheduler": {"policy": "SCHED_BATCH", "nice": 5})"},
              "1 1 0 3\n25 5\n",
              kNotRunc},
        Field{"Clocks",
              {.linux_part = R"("timeOffsets": {"monotonic": {"secs": 7, "nanosecs": 9}})",
               .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"},
                                 {"type": "ipc"}, {"type": "time"}])"},
              "monotonic           7         9\n",
              kNotRunc},
        Field{"Seccomp",
              {.linux_part = kFilter, .script = "mkdir /x 2>&1 || true"},
              "Function not implemented"},
        Field{"SeccompOfAUserWithoutNewPrivileges",
              {.process = R"("noNewPrivileges": true)",
               .linux_part = kFilter,
               .user = R"({"uid": 1000, "gid": 1000})"},
              "Seccomp: 2\n"},
        Field{"SeccompOfAUser",
              {.linux_part = kFilter, .user = R"({"uid": 1000, "gid": 1000})"},
              "CapEff: 0000000000000000\n"},
        Field{"Loopback",
              {.script = "ip addr show lo",
               .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"},
                                 {"type": "ipc"}, {"type": "network"}])"},
              "inet 127.0.0.1/8"},
        Field{"UserNamespace",
              {.process = R"("oomScoreAdj": 9, "rlimits": [
                 {"type": "RLIMIT_NOFILE", "soft": 100, "hard": 1000}])",
               .linux_part = R"("uidMappings": [{"containerID": 0, "hostID": 100000, "size": 2000}],
                 "gidMappings": [{"containerID": 0, "hostID": 200000, "size": 2000}])",
               .script = "cat /proc/1/uid_map /proc/1/gid_map",
               .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"},
                                 {"type": "ipc"}, {"type": "user"}])",
               .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                             "options": ["mode=755"]})",
               .user = R"({"uid": 1000, "gid": 1000, "additionalGids": [5]})"},
              "         0     200000       2000\n"}),
    [](const auto& field) { return std::string(field.param.name); });

}  // namespace
}  // namespace gantry::container
