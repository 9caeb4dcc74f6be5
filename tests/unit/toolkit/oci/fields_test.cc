// SPDX-License-Identifier: Apache-2.0
//
// Every field of config.json that makes a container: read, and refused where it is wrong.
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sys/resource.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/spec.h>

namespace gantry::oci {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `process` and `linux` hold these members beside the least that is demanded.
std::string Config(const std::string& process, const std::string& part) {
  return R"({"ociVersion": "1.2.0", "root": {"path": "r"}, "process": {"args": ["a"], "cwd": "/")" +
         (process.empty() ? "" : ", " + process) + R"(}, "linux": {)" + part + "}}";
}

Spec Read(const std::string& process, const std::string& part) {
  auto spec = ParseSpec(Config(process, part), "f");
  EXPECT_TRUE(spec.has_value()) << spec.error().message;
  return spec ? *spec : Spec{};
}

ProcessSpec ReadProcessOf(const std::string& members) { return Read(members, "").process; }

LinuxSpec ReadLinuxOf(const std::string& members) { return Read("", members).linux_spec; }

TEST(SpecCapabilities, AreMasksOfEverySet) {
  const auto sets = ReadProcessOf(R"("capabilities": {
    "bounding": ["CAP_CHOWN", "CAP_CHECKPOINT_RESTORE"], "effective": ["CAP_KILL"],
    "inheritable": ["CAP_NET_RAW"], "permitted": ["CAP_MKNOD"], "ambient": ["CAP_SYSLOG"]})")
                        .capabilities;
  ASSERT_TRUE(sets.has_value());
  EXPECT_EQ(sets->bounding, uint64_t{1} << CAP_CHOWN | uint64_t{1} << CAP_CHECKPOINT_RESTORE);
  EXPECT_EQ(sets->effective, uint64_t{1} << CAP_KILL);
  EXPECT_EQ(sets->inheritable, uint64_t{1} << CAP_NET_RAW);
  EXPECT_EQ(sets->permitted, uint64_t{1} << CAP_MKNOD);
  EXPECT_EQ(sets->ambient, uint64_t{1} << CAP_SYSLOG);
  EXPECT_TRUE(sets->unknown.empty());
}

TEST(SpecCapabilities, KeepWhatTheyDoNotKnow) {
  const auto sets =
      ReadProcessOf(R"("capabilities": {"bounding": ["CAP_X", "CAP_KILL"], "ambient": ["CAP_X"]})")
          .capabilities;
  ASSERT_TRUE(sets.has_value());
  EXPECT_EQ(sets->bounding, uint64_t{1} << CAP_KILL);
  EXPECT_THAT(sets->unknown, ElementsAre("CAP_X"));
}

TEST(SpecCapabilities, AreAbsentOrEmpty) {
  EXPECT_FALSE(ReadProcessOf("").capabilities.has_value());
  EXPECT_EQ(ReadProcessOf(R"("capabilities": {})").capabilities.value().bounding, 0U);
}

TEST(SpecProcess, HasLimits) {
  const auto process = ReadProcessOf(R"("rlimits": [
    {"type": "RLIMIT_NOFILE", "soft": 10, "hard": 20},
    {"type": "RLIMIT_CORE", "soft": 18446744073709551615, "hard": 18446744073709551615}],
    "oomScoreAdj": -5, "noNewPrivileges": true,
    "ioPriority": {"class": "IOPRIO_CLASS_BE", "priority": 7},
    "execCPUAffinity": {"initial": "0-1", "final": "1"})");
  ASSERT_EQ(process.rlimits.size(), 2U);
  EXPECT_EQ(process.rlimits[0].resource, RLIMIT_NOFILE);
  EXPECT_EQ(process.rlimits[0].soft, 10U);
  EXPECT_EQ(process.rlimits[0].hard, 20U);
  EXPECT_EQ(process.rlimits[1].hard, UINT64_MAX);
  EXPECT_EQ(process.oom_score_adj, -5);
  EXPECT_TRUE(process.no_new_privileges);
  EXPECT_EQ(process.io_priority->io_class, IOPRIO_CLASS_BE);
  EXPECT_EQ(process.io_priority->priority, 7);
  EXPECT_EQ(process.initial_cpu_affinity, "0-1");
  EXPECT_EQ(process.final_cpu_affinity, "1");
}

TEST(SpecProcess, HasAScheduler) {
  const auto scheduler = ReadProcessOf(R"("scheduler": {
    "policy": "SCHED_DEADLINE", "nice": -3, "priority": 2,
    "flags": ["SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM"],
    "runtime": 4, "deadline": 5, "period": 6})")
                             .scheduler;
  ASSERT_TRUE(scheduler.has_value());
  EXPECT_EQ(scheduler->policy, static_cast<uint32_t>(SCHED_DEADLINE));
  EXPECT_EQ(scheduler->nice, -3);
  EXPECT_EQ(scheduler->priority, 2U);
  EXPECT_EQ(scheduler->flags, uint64_t{SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_RECLAIM});
  EXPECT_EQ(scheduler->runtime, 4U);
  EXPECT_EQ(scheduler->deadline, 5U);
  EXPECT_EQ(scheduler->period, 6U);
}

TEST(SpecProcess, HasLabels) {
  const auto process = ReadProcessOf(R"("apparmorProfile": "p", "selinuxLabel": "l")");
  EXPECT_EQ(process.apparmor_profile, "p");
  EXPECT_EQ(process.selinux_label, "l");
}

TEST(SpecLinux, HasIdMappings) {
  const LinuxSpec part = ReadLinuxOf(
      R"("uidMappings": [{"containerID": 0, "hostID": 1000, "size": 10}],
         "gidMappings": [{"containerID": 1, "hostID": 0, "size": 4294967295}])");
  EXPECT_THAT(part.uid_mappings,
              ElementsAre(IdMapping{.host_id = 1000, .container_id = 0, .length = 10}));
  EXPECT_THAT(part.gid_mappings,
              ElementsAre(IdMapping{.host_id = 0, .container_id = 1, .length = UINT32_MAX}));
}

TEST(SpecLinux, HasDevices) {
  const LinuxSpec part = ReadLinuxOf(R"("devices": [
    {"type": "b", "path": "/dev/x", "major": 7, "minor": 9, "fileMode": 24960, "uid": 1, "gid": 2},
    {"type": "p", "path": "/pipe"}])");
  ASSERT_EQ(part.devices.size(), 2U);
  EXPECT_EQ(part.devices[0].type, 'b');
  EXPECT_EQ(part.devices[0].path, "/dev/x");
  EXPECT_EQ(part.devices[0].major, 7U);
  EXPECT_EQ(part.devices[0].minor, 9U);
  // 060600: the type is not a part of it.
  EXPECT_EQ(part.devices[0].mode, 0600U);
  EXPECT_EQ(part.devices[0].uid, 1U);
  EXPECT_EQ(part.devices[0].gid, 2U);
  EXPECT_EQ(part.devices[1].mode, 0666U);
}

TEST(SpecLinux, HasPathsAndWords) {
  const LinuxSpec part = ReadLinuxOf(R"("maskedPaths": ["/proc/kcore"],
    "readonlyPaths": ["/proc/sys", "/proc/bus"], "sysctl": {"net.ipv4.ip_forward": "1"},
    "rootfsPropagation": "rslave", "mountLabel": "m", "personality": {"domain": "LINUX32"},
    "timeOffsets": {"monotonic": {"secs": -2, "nanosecs": 3}, "boottime": {}})");
  EXPECT_THAT(part.masked_paths, ElementsAre("/proc/kcore"));
  EXPECT_THAT(part.readonly_paths, ElementsAre("/proc/sys", "/proc/bus"));
  EXPECT_EQ(part.sysctl.at("net.ipv4.ip_forward"), "1");
  EXPECT_EQ(part.rootfs_propagation, "rslave");
  EXPECT_EQ(part.mount_label, "m");
  EXPECT_EQ(part.personality->domain, "LINUX32");
  EXPECT_EQ(part.time_offsets.at("monotonic").seconds, -2);
  EXPECT_EQ(part.time_offsets.at("monotonic").nanoseconds, 3U);
  EXPECT_EQ(part.time_offsets.at("boottime").seconds, 0);
}

TEST(SpecLinux, HasSeccomp) {
  const auto seccomp = ReadLinuxOf(R"("seccomp": {
    "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
    "architectures": ["SCMP_ARCH_X86_64"], "flags": ["SECCOMP_FILTER_FLAG_LOG"],
    "listenerPath": "/run/s", "listenerMetadata": "m",
    "syscalls": [{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
                 {"names": ["clone"], "action": "SCMP_ACT_TRACE", "errnoRet": 7,
                  "args": [{"index": 5, "value": 18446744073709551615, "valueTwo": 2,
                            "op": "SCMP_CMP_MASKED_EQ"}]}]})")
                           .seccomp;
  ASSERT_TRUE(seccomp.has_value());
  EXPECT_EQ(seccomp->default_action, "SCMP_ACT_ERRNO");
  EXPECT_EQ(seccomp->default_errno_ret, 38U);
  EXPECT_THAT(seccomp->architectures, ElementsAre("SCMP_ARCH_X86_64"));
  EXPECT_THAT(seccomp->flags, ElementsAre("SECCOMP_FILTER_FLAG_LOG"));
  EXPECT_EQ(seccomp->listener_path, "/run/s");
  EXPECT_EQ(seccomp->listener_metadata, "m");
  ASSERT_EQ(seccomp->rules.size(), 2U);
  EXPECT_THAT(seccomp->rules[0].names, ElementsAre("read", "write"));
  EXPECT_EQ(seccomp->rules[1].errno_ret, 7U);
  EXPECT_EQ(seccomp->rules[1].args.at(0).index, 5U);
  EXPECT_EQ(seccomp->rules[1].args.at(0).value, UINT64_MAX);
  EXPECT_EQ(seccomp->rules[1].args.at(0).value_two, 2U);
  EXPECT_EQ(seccomp->rules[1].args.at(0).op, "SCMP_CMP_MASKED_EQ");
}

TEST(SpecTopLevel, HasNamesAndMappedMounts) {
  const auto spec = ParseSpec(R"({"ociVersion": "1.2.0", "root": {"path": "r"},
    "process": {"args": ["a"], "cwd": "/"}, "hostname": "h", "domainname": "d",
    "mounts": [{"destination": "/x", "uidMappings": [{"containerID": 1, "hostID": 2, "size": 3}],
                "gidMappings": [{"containerID": 4, "hostID": 5, "size": 6}]}]})",
                              "f");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->hostname, "h");
  EXPECT_EQ(spec->domainname, "d");
  EXPECT_THAT(spec->mounts.at(0).uid_mappings,
              ElementsAre(IdMapping{.host_id = 2, .container_id = 1, .length = 3}));
  EXPECT_THAT(spec->mounts.at(0).gid_mappings,
              ElementsAre(IdMapping{.host_id = 5, .container_id = 4, .length = 6}));
}

struct Wrong {
  const char* name;
  const char* process;
  const char* part;
  const char* error;
};

class WrongField : public testing::TestWithParam<Wrong> {};

TEST_P(WrongField, NamesFilePlaceAndValue) {
  const auto spec = ParseSpec(Config(GetParam().process, GetParam().part), "/b/config.json");
  ASSERT_FALSE(spec.has_value());
  EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
  EXPECT_EQ(spec.error().message, std::string("check '/b/config.json': ") + GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Process, WrongField,
    testing::Values(
        Wrong{"Capabilities", R"("capabilities": [])", "",
              "/process/capabilities: expected an object, found an array"},
        Wrong{"CapabilitySet", R"("capabilities": {"ambient": "CAP_KILL"})", "",
              "/process/capabilities/ambient: expected an array, found a string"},
        Wrong{"Rlimit", R"("rlimits": [{"type": "RLIMIT_X", "soft": 1, "hard": 1}])", "",
              R"(/process/rlimits/0/type: not a resource limit, found "RLIMIT_X")"},
        Wrong{"RlimitSoft", R"("rlimits": [{"type": "RLIMIT_CPU", "soft": -1, "hard": 1}])", "",
              "/process/rlimits/0/soft: must not be negative, found -1"},
        Wrong{
            "RlimitOrder", R"("rlimits": [{"type": "RLIMIT_CPU", "soft": 2, "hard": 1}])", "",
            R"(/process/rlimits/0: soft above hard, found {"hard":1,"soft":2,"type":"RLIMIT_CPU"})"},
        Wrong{"RlimitTwice", R"("rlimits": [{"type": "RLIMIT_CPU"}, {"type": "RLIMIT_CPU"}])", "",
              R"(/process/rlimits/1/type: listed twice, found "RLIMIT_CPU")"},
        Wrong{"OomScore", R"("oomScoreAdj": 1001)", "",
              "/process/oomScoreAdj: not between -1000 and 1000, found 1001"},
        Wrong{"OomScoreRange", R"("oomScoreAdj": 4294967296)", "",
              "/process/oomScoreAdj: out of range, found 4294967296"},
        Wrong{"Policy", R"("scheduler": {"policy": "SCHED_X"})", "",
              R"(/process/scheduler/policy: not a scheduling policy, found "SCHED_X")"},
        Wrong{"NoPolicy", R"("scheduler": {})", "",
              "/process/scheduler/policy: not a scheduling policy, found nothing"},
        Wrong{"Nice", R"("scheduler": {"policy": "SCHED_OTHER", "nice": 20})", "",
              "/process/scheduler/nice: not between -20 and 19, found 20"},
        Wrong{"SchedulerPriority", R"("scheduler": {"policy": "SCHED_RR", "priority": 100})", "",
              "/process/scheduler/priority: not between 0 and 99, found 100"},
        Wrong{"SchedulerFlag", R"("scheduler": {"policy": "SCHED_RR", "flags": ["X"]})", "",
              R"(/process/scheduler/flags/0: not a flag of a scheduler, found "X")"},
        Wrong{"IoClass", R"("ioPriority": {"class": "RT"})", "",
              R"(/process/ioPriority/class: not a class of IO, found "RT")"},
        Wrong{"IoPriority", R"("ioPriority": {"class": "IOPRIO_CLASS_RT", "priority": 8})", "",
              "/process/ioPriority/priority: not between 0 and 7, found 8"},
        Wrong{"NoNewPrivileges", R"("noNewPrivileges": 1)", "",
              "/process/noNewPrivileges: expected a boolean, found a number"},
        Wrong{"AppArmor", R"("apparmorProfile": 1)", "",
              "/process/apparmorProfile: expected a string, found a number"},
        Wrong{"Affinity", R"("execCPUAffinity": "0")", "",
              "/process/execCPUAffinity: expected an object, found a string"}),
    [](const auto& wrong) { return std::string(wrong.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Linux, WrongField,
    testing::Values(
        Wrong{"MappingSize", "", R"("uidMappings": [{"containerID": 0, "hostID": 0}])",
              "/linux/uidMappings/0/size: no ids, found nothing"},
        Wrong{"MappingRange", "",
              R"("gidMappings": [{"containerID": 1, "hostID": 2, "size": 4294967295}])",
              "/linux/gidMappings/0: ids above 4294967295, found "
              R"({"containerID":1,"hostID":2,"size":4294967295})"},
        Wrong{"DeviceType", "", R"("devices": [{"type": "x", "path": "/dev/x"}])",
              R"(/linux/devices/0/type: not a kind of device, found "x")"},
        Wrong{"DevicePath", "", R"("devices": [{"type": "c", "path": "dev/x"}])",
              R"(/linux/devices/0/path: not an absolute path, found "dev/x")"},
        Wrong{"DeviceMajor", "", R"("devices": [{"type": "c", "path": "/x", "major": -1}])",
              "/linux/devices/0/major: must not be negative, found -1"},
        Wrong{"Masked", "", R"("maskedPaths": "/x")",
              "/linux/maskedPaths: expected an array, found a string"},
        Wrong{"Sysctl", "", R"("sysctl": {"a.b": 1})",
              "/linux/sysctl/a.b: expected a string, found a number"},
        Wrong{"SysctlName", "", R"("sysctl": {"": "1"})", R"(/linux/sysctl/: no name, found "1")"},
        Wrong{"Propagation", "", R"("rootfsPropagation": "rsomething")",
              R"(/linux/rootfsPropagation: not a propagation of mounts, found "rsomething")"},
        Wrong{"Personality", "", R"("personality": {"domain": "BSD"})",
              R"(/linux/personality/domain: not LINUX or LINUX32, found "BSD")"},
        Wrong{"Clock", "", R"("timeOffsets": {"realtime": {"secs": 1}})",
              R"(/linux/timeOffsets/realtime: not a clock of a time namespace, found {"secs":1})"},
        Wrong{"Nanoseconds", "", R"("timeOffsets": {"boottime": {"nanosecs": 1000000000}})",
              "/linux/timeOffsets/boottime/nanosecs: a second or more, found 1000000000"},
        Wrong{"NoAction", "", R"("seccomp": {})",
              "/linux/seccomp/defaultAction: not an action of seccomp, found nothing"},
        Wrong{"Action", "",
              R"("seccomp": {"defaultAction": "SCMP_ACT_LOG", "syscalls": [
                 {"names": ["a"], "action": "ALLOW"}]})",
              R"(/linux/seccomp/syscalls/0/action: not an action of seccomp, found "ALLOW")"},
        Wrong{"NoCalls", "",
              R"("seccomp": {"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"names": []}]})",
              "/linux/seccomp/syscalls/0/names: no system call"},
        Wrong{"ArgumentIndex", "",
              R"("seccomp": {"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"names": ["a"],
                 "action": "SCMP_ACT_KILL", "args": [{"index": 6}]}]})",
              "/linux/seccomp/syscalls/0/args/0/index: not an argument of a system call, found 6"},
        Wrong{"ArgumentOperator", "",
              R"("seccomp": {"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"names": ["a"],
                 "action": "SCMP_ACT_KILL", "args": [{"index": 0, "op": "EQ"}]}]})",
              R"(/linux/seccomp/syscalls/0/args/0/op: not an operator of seccomp, found "EQ")"},
        Wrong{"Resources", "", R"("resources": 1)",
              "/linux/resources: expected an object, found a number"}),
    [](const auto& wrong) { return std::string(wrong.param.name); });

TEST(WrongValue, IsCutShortBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 100; ++i) {
    name += "\u00e4";
  }
  const auto spec = ParseSpec(Config("", R"("rootfsPropagation": ")" + name + "\""), "f");
  ASSERT_FALSE(spec.has_value());
  // A quote and 39 characters of two bytes.
  EXPECT_THAT(spec.error().message, testing::EndsWith(name.substr(0, 78) + "..."));
}

}  // namespace
}  // namespace gantry::oci
