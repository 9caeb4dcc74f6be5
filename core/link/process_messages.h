// SPDX-License-Identifier: Apache-2.0
//
// Processes that the keeper starts for the engine or watches, and their ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/message_type.h"
#include "core/link/rlimit.h"

namespace gantry::link {

/// A process that is not confused with a later one of the same pid.
struct ProcessRef {
  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
  }
};

/// A descriptor of the message that the child joins as a namespace.
struct JoinNamespace {
  /// Index into the message's descriptors.
  uint32_t fd_index = 0;
  /// CLONE_NEWNET and so on; with a pidfd any of them together.
  uint32_t kind = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.fd_index);
    field(2, self.kind);
  }
};

/// A range of ids of a new user namespace.
struct IdRange {
  uint32_t inside = 0;
  uint32_t outside = 0;
  uint32_t length = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.inside);
    field(2, self.outside);
    field(3, self.length);
  }
};

/// gantry::RootPath.
struct ShownPath {
  std::string path;
  bool writable = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.path);
    field(2, self.writable);
  }
};

/// engine -> keeper: start a program as a child of the keeper. Answer: Spawned.
/// Its exit is always recorded and reported (see Exit).
///
/// The child: signals unblocked and, but for `ignore_sigpipe`, default, only the
/// descriptors named here, /dev/null on 0, 1, 2 where none is named for them.
struct Spawn {
  static constexpr Type kType = Type::kSpawn;

  uint64_t tag = 0;
  /// Absolute path of the program.
  std::string path;
  std::vector<std::string> argv;
  /// "NAME=value"; the whole environment.
  std::vector<std::string> env;
  /// Empty: "/".
  std::string cwd;
  /// Parallel to the message's descriptors: the number that each gets in the child,
  /// -1 for one that is only referred to by an index below.
  std::vector<int32_t> fd_targets;
  bool new_session = false;
  /// Index of the terminal that becomes the controlling one (implies new_session).
  std::optional<uint32_t> controlling_terminal;
  /// Index of a cgroup v2 directory that the child is born in.
  std::optional<uint32_t> cgroup_fd;
  /// cgroup v1 (and hybrid): `tasks` files that the child writes itself into before the
  /// program runs.
  std::vector<std::string> cgroup_tasks;
  /// Joined in this order, after the cgroups and limits.
  std::vector<JoinNamespace> join;
  std::vector<Rlimit> rlimits;
  /// Unset: as the keeper was started with.
  std::optional<int32_t> oom_score_adj;
  std::optional<uint32_t> uid;
  /// Set: supplementary groups are dropped.
  std::optional<uint32_t> gid;
  bool no_new_privs = false;
  /// Finds the process again after an engine restart (NamedSpawn). Empty: it cannot be found.
  std::string name;
  /// CLONE_NEW* flags: made after all in `join` are joined.
  uint32_t new_namespaces = 0;
  /// Of a new user namespace. Empty: the keeper's own ids, each mapped to itself.
  std::vector<IdRange> uid_map;
  std::vector<IdRange> gid_map;
  /// Index of the program, open: executed in place of `path`.
  std::optional<uint32_t> program;
  /// The address of the group for which it is: it gets the limits of who announced that, of
  /// those that `rlimits` does not name, as far as the keeper may set them. Empty, or a group
  /// of which none are known: open files as the keeper was started with, others as it has.
  std::string group;
  /// The program of a seccomp filter, as the kernel has it (sock_filter, 8 bytes each).
  std::string seccomp;
  /// The capabilities that are kept; unset: all.
  std::optional<uint64_t> capabilities;
  bool empty_root = false;
  /// MS_PRIVATE or MS_SLAVE: all mounts of a new mount namespace become that. 0: nothing.
  uint32_t propagation = 0;
  bool ignore_sigpipe = false;
  /// With `empty_root`.
  std::vector<ShownPath> root_paths;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.path);
    field(3, self.argv);
    field(4, self.env);
    field(5, self.cwd);
    field(6, self.fd_targets);
    field(7, self.new_session);
    field(8, self.controlling_terminal);
    field(9, self.cgroup_fd);
    field(10, self.cgroup_tasks);
    field(11, self.join);
    field(12, self.rlimits);
    field(13, self.oom_score_adj);
    field(14, self.uid);
    field(15, self.gid);
    field(16, self.no_new_privs);
    field(17, self.name);
    field(18, self.new_namespaces);
    field(19, self.uid_map);
    field(20, self.gid_map);
    field(21, self.program);
    field(22, self.group);
    field(23, self.seccomp);
    field(24, self.capabilities);
    field(25, self.empty_root);
    field(26, self.propagation);
    field(27, self.ignore_sigpipe);
    field(28, self.root_paths);
  }
};

/// keeper -> engine: the process runs, or why not. Descriptors on success: its pidfd.
struct Spawned {
  static constexpr Type kType = Type::kSpawned;

  uint64_t tag = 0;
  int32_t pid = 0;
  /// Clock ticks since boot (/proc/PID/stat, field 22).
  uint64_t start_time = 0;
  /// Not 0 (a gantry::Code): there is no process.
  int32_t code = 0;
  int32_t sys_errno = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.pid);
    field(3, self.start_time);
    field(4, self.code);
    field(5, self.sys_errno);
    field(6, self.message);
  }
};

/// engine -> keeper: the exit of this process matters, too. For processes that came
/// to the keeper as orphans (a container's init started by an OCI runtime). Also right
/// after its death: the records of the last 1,024 unnamed orphans are kept for that.
/// Answer: Adopted, and an Exit (before or after it) when it has ended.
struct Adopt {
  static constexpr Type kType = Type::kAdopt;

  int32_t pid = 0;
  /// 0: the newest process of that pid, alive or just reaped.
  uint64_t start_time = 0;
  uint64_t tag = 0;
  /// As `Spawn::name`. Empty: it has none, or keeps the one that it has.
  std::string name;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
    field(3, self.tag);
    field(4, self.name);
  }
};

/// keeper -> engine: it is watched, or its Exit is on record; or kNotFound.
struct Adopted {
  static constexpr Type kType = Type::kAdopted;

  uint64_t tag = 0;
  uint64_t start_time = 0;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.start_time);
    field(3, self.code);
    field(4, self.message);
  }
};

/// keeper -> engine, in a snapshot: a process that was spawned or adopted with a name, and runs,
/// or whose exit was not acknowledged.
struct NamedSpawn {
  static constexpr Type kType = Type::kNamedSpawn;

  std::string name;
  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.pid);
    field(3, self.start_time);
  }
};

/// A name, and how the last process that had it ended.
struct EndedName {
  std::string name;
  int32_t pid = 0;
  uint64_t start_time = 0;
  int32_t wait_status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.pid);
    field(3, self.start_time);
    field(4, self.wait_status);
    field(5, self.exited_at_ns);
  }
};

/// keeper -> engine, in a snapshot, in several parts: of the last processes that had a name and
/// whose exits were acknowledged.
struct EndedNames {
  static constexpr Type kType = Type::kEndedNames;

  std::vector<EndedName> ended;

  void Each(this auto& self, auto&& field) { field(1, self.ended); }
};

/// engine -> keeper: how processes ended whose names begin with `prefix` matters no more.
struct ForgetEnded {
  static constexpr Type kType = Type::kForgetEnded;

  std::string prefix;

  void Each(this auto& self, auto&& field) { field(1, self.prefix); }
};

/// keeper -> engine, in a snapshot, in several parts: the processes whose exits the keeper
/// waits for. An Adopt of one of these says nothing new to it.
struct Watched {
  static constexpr Type kType = Type::kWatched;

  std::vector<ProcessRef> processes;

  void Each(this auto& self, auto&& field) { field(1, self.processes); }
};

/// keeper -> engine: a spawned or adopted process ended. Kept, and sent again to
/// the next engine, until ExitAck.
struct Exit {
  static constexpr Type kType = Type::kExit;

  int32_t pid = 0;
  uint64_t start_time = 0;
  /// As wait(2) gives it.
  int32_t wait_status = 0;
  /// When the keeper saw it, nanoseconds since 1970.
  int64_t exited_at_ns = 0;
  int64_t user_us = 0;
  int64_t system_us = 0;
  int64_t max_rss_kib = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
    field(3, self.wait_status);
    field(4, self.exited_at_ns);
    field(5, self.user_us);
    field(6, self.system_us);
    field(7, self.max_rss_kib);
  }
};

/// engine -> keeper: the Exit of this process is recorded elsewhere; forget it.
/// For a process that lives: its exit does not matter any more.
struct ExitAck {
  static constexpr Type kType = Type::kExitAck;

  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
  }
};

}  // namespace gantry::link
