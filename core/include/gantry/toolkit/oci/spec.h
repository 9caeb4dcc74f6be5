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

#include <gantry/error.h>
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
  /// Names that this version does not know, each once: the specification wants a warning for
  /// them, not an error.
  std::vector<std::string> unknown;
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

/// Tens of kilobytes: to be used and dropped, not kept per container.
struct Spec {
  ProcessSpec process;
  Root root;
  std::string hostname;
  std::string domainname;
  std::vector<SpecMount> mounts;
  std::map<std::string, std::string> annotations;
  LinuxSpec linux_spec;
  std::string cgroups_path;
  /// `linux.resources` as it came; empty when absent.
  std::string resources_json;
  /// The whole text, byte for byte.
  std::string json;

  /// The container gets a pid namespace of its own, so that the kernel ends
  /// every process of it with its init.
  bool has_private_pid_namespace() const;
  /// The path of the network namespace that the container joins; empty: none.
  std::string network_namespace_path() const;
  /// Null when the type is not listed: the host's is used.
  const LinuxNamespace* FindNamespace(std::string_view type) const;
  /// Empty when absent.
  std::string_view annotation(const std::string& key) const;
  /// Absolute path of the root file system of a container with this bundle.
  std::string RootPath(std::string_view bundle) const;
  /// Where its root file system is; `mounted`: the request brought it.
  std::string RootfsIn(const std::string& bundle, bool mounted) const;
};

/// The text of a config.json; `file` is what errors call it.
/// Errors: kInvalidArgument: anything wrong with it, with the file, a JSON pointer
/// (`/process/args/0`) and what is there. What `linux.resources` holds is not looked at.
/// Thread: any. Blocks: never.
Result<Spec> ParseSpec(std::string text, std::string_view file);

/// The `process` object of an Exec request. Errors: kInvalidArgument.
Result<ProcessSpec> ParseProcess(std::string text, std::string_view what = "exec spec");

/// `text`, a `process` object, with its `terminal` replaced: the request's own
/// field overrides it. Errors: kInvalidArgument.
Result<std::string> WithTerminal(std::string_view text, bool terminal);

}  // namespace gantry::oci
