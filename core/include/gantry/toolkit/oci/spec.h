// SPDX-License-Identifier: Apache-2.0
//
// config.json of a bundle as types: all that makes a Linux container of a process. Who reads it
// gets values that were checked against the specification; whether a node or a backend can do
// what they ask for is said by whoever does it.
// Source: OCI runtime-spec 1.2: config.md and config-linux.md.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/id_mapping.h>
#include <gantry/process.h>

namespace gantry::oci {

struct User {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::optional<uint32_t> umask;
  std::vector<uint32_t> additional_gids;
};

/// Each set as a mask: bit N is capability N of capabilities(7).
struct Capabilities {
  uint64_t bounding = 0;
  uint64_t effective = 0;
  uint64_t inheritable = 0;
  uint64_t permitted = 0;
  uint64_t ambient = 0;
};

struct Rlimit {
  /// RLIMIT_* of getrlimit(2).
  int resource = 0;
  /// UINT64_MAX: no limit.
  uint64_t soft = 0;
  uint64_t hard = 0;
};

/// As sched_setattr(2) takes it.
struct Scheduler {
  /// SCHED_*.
  uint32_t policy = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  /// SCHED_FLAG_*.
  uint64_t flags = 0;
  /// In nanoseconds.
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

struct IoPriority {
  /// IOPRIO_CLASS_*.
  int io_class = 0;
  int priority = 0;
};

/// The `process` object: of config.json, or of an Exec request.
struct ProcessSpec {
  bool terminal = false;
  std::optional<ConsoleSize> console_size;
  User user;
  /// Never empty; `args[0]` is not empty either.
  std::vector<std::string> args;
  std::vector<std::string> env;
  /// Absolute.
  std::string cwd;
  /// Absent: the specification leaves it to whoever runs it.
  std::optional<Capabilities> capabilities;
  std::vector<Rlimit> rlimits;
  bool no_new_privileges = false;
  std::string apparmor_profile;
  std::string selinux_label;
  /// -1000 to 1000.
  std::optional<int> oom_score_adj;
  std::optional<Scheduler> scheduler;
  std::optional<IoPriority> io_priority;
  /// `execCPUAffinity`: as cpuset(7) writes lists.
  std::string initial_cpu_affinity;
  std::string final_cpu_affinity;
  /// The object as it came; empty in a `Spec`, which has it in its own text.
  std::string json;

  /// It has an AppArmor profile or an SELinux label.
  bool confined() const { return !apparmor_profile.empty() || !selinux_label.empty(); }
};

struct Root {
  /// As written: absolute, or relative to the bundle.
  std::string path;
  bool readonly = false;
};

struct SpecMount {
  /// In the root; never empty.
  std::string destination;
  std::string type;
  std::string source;
  std::vector<std::string> options;
  std::vector<IdMapping> uid_mappings;
  std::vector<IdMapping> gid_mappings;
};

struct LinuxNamespace {
  /// pid, network, mount, ipc, uts, user, cgroup, time.
  std::string type;
  /// The one to join, absolute; empty: a new one.
  std::string path;
};

/// A file that is made in the root.
struct Device {
  /// 'c', 'u', 'b' or 'p', as mknod(1) has them.
  char type = 'c';
  /// In the root; absolute.
  std::string path;
  uint32_t major = 0;
  uint32_t minor = 0;
  mode_t mode = 0666;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

/// `linux.seccomp`, in the words of the specification; libseccomp gives them their numbers.
struct Seccomp {
  struct Argument {
    uint32_t index = 0;
    uint64_t value = 0;
    uint64_t value_two = 0;
    /// SCMP_CMP_*.
    std::string op;
  };
  struct Rule {
    std::vector<std::string> names;
    /// SCMP_ACT_*.
    std::string action;
    std::optional<uint32_t> errno_ret;
    std::vector<Argument> args;
  };
  std::string default_action;
  std::optional<uint32_t> default_errno_ret;
  /// SCMP_ARCH_*.
  std::vector<std::string> architectures;
  /// SECCOMP_FILTER_FLAG_*.
  std::vector<std::string> flags;
  std::string listener_path;
  std::string listener_metadata;
  std::vector<Rule> rules;
};

/// Of a new time namespace.
struct TimeOffset {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};

struct Personality {
  /// LINUX or LINUX32.
  std::string domain;
};

/// `linux`, but for what is about cgroups.
struct LinuxSpec {
  std::vector<LinuxNamespace> namespaces;
  std::vector<IdMapping> uid_mappings;
  std::vector<IdMapping> gid_mappings;
  std::vector<Device> devices;
  std::vector<std::string> masked_paths;
  std::vector<std::string> readonly_paths;
  std::map<std::string, std::string> sysctl;
  std::optional<Seccomp> seccomp;
  /// shared, slave, private, unbindable, or one of these behind an r; empty: rprivate.
  std::string rootfs_propagation;
  std::string mount_label;
  std::optional<Personality> personality;
  /// By clock: monotonic, boottime.
  std::map<std::string, TimeOffset> time_offsets;
};

}  // namespace gantry::oci
