// SPDX-License-Identifier: Apache-2.0
//
// Processes of the host: how a backend asks for one and what it can do with it.
// They are children of the keeper, never of the engine: a restart of the
// engine does not touch them, and no exit status is lost.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// A pid in the host's namespace. 0: none.
struct HostPid {
  int32_t value = 0;

  explicit operator bool() const { return value > 0; }

  auto operator<=>(const HostPid&) const = default;
};

/// How the kernel says a process ended. Source: wait(2).
struct WaitStatus {
  /// As `waitpid` gives it.
  int raw = 0;
  /// Nanoseconds since the epoch at which the keeper reaped it.
  int64_t exited_at_ns = 0;

  /// The exit code, or 128 + the signal's number.
  uint32_t code() const;
};

/// How mounts and unmounts go between a new mount namespace and the node's.
/// Source: mount_namespaces(7).
enum class MountPropagation {
  /// Not at all. What the node unmounts stays mounted there.
  kPrivate,
  /// Those of the node come there, and none go back.
  kSlave,
  /// As clone(2) leaves it: both ways, or with a new user namespace as `kSlave`.
  kUnchanged,
};

/// What of the node is in a root of a process's own, under the same name.
struct RootPath {
  /// Of a directory, file, device or socket: absolute, without `.`, `..`, `//` and a slash at its
  /// end, and not below /proc. A link is followed: what it leads to is there, under the link's
  /// name.
  std::string path;
  /// Else it is there for reading, but for devices and sockets, with what is mounted below it
  /// (before Linux 5.12: without). To a writable directory comes, too, what is mounted below it
  /// later, where the node's mount is a shared one. Source: mount_namespaces(7).
  bool writable = false;
};

/// A process to start. The environment is exactly `env`.
struct SpawnRequest {  // NOLINT(clang-analyzer-optin.performance.Padding): by subject
  /// `argv[0]` is the path that is executed; not looked up in PATH.
  std::vector<std::string> argv;
  /// A program, open, executed in place of `argv[0]`, which then is but a name: for one that may
  /// be replaced. Not a script.
  UniqueFd program;
  std::vector<std::string> env;
  /// Empty: `/`.
  std::string cwd;
  /// Descriptors, and the numbers they get. 0, 1 and 2 that are not named are
  /// /dev/null; nothing else is inherited.
  std::vector<std::pair<UniqueFd, int>> fds;
  /// A session of its own.
  bool new_session = true;
  /// The number in `fds` of a terminal, open for reading, that becomes the
  /// controlling one; in a session of its own. Source: ioctl_tty(2), TIOCSCTTY.
  std::optional<int> controlling_terminal;
  /// Directories of cgroups to be born in: one of the unified hierarchy, or
  /// one per v1 controller.
  std::vector<std::string> cgroups;
  /// Namespaces to join first, in this order: open descriptors with their CLONE_NEW* type, or
  /// a pidfd with any of them together. In a joined pid namespace the process is born, and its
  /// pid, its end and its tag are its own as ever; where the namespace's first process has ended
  /// it fails with kResourceExhausted, as the kernel answers ENOMEM. Source: setns(2), Linux 5.8;
  /// pid_namespaces(7).
  std::vector<std::pair<UniqueFd, int>> namespaces;
  /// CLONE_NEW* flags, without CLONE_NEWTIME: namespaces that are made for it,
  /// after others were joined; none of a type that is joined. They belong to the
  /// user namespace made here or joined, else to the node's. With CLONE_NEWPID it is pid 1 there:
  /// of signals it gets those that it handles, SIGKILL and SIGSTOP, and all others in it end with
  /// it.
  int new_namespaces = 0;
  /// Of all mounts of a mount namespace that `new_namespaces` makes.
  MountPropagation mounts = MountPropagation::kPrivate;
  /// Its root is an empty folder that nobody can write to, in a mount namespace of its own with
  /// nothing else in it. `cwd` is empty or `/`; the program is linked statically, and no script.
  bool empty_root = false;
  /// With `empty_root`: what is in that root nevertheless, at most 64; a directory before what lies
  /// in it. The program may be linked dynamically where this has its libraries.
  std::vector<RootPath> root_paths;
  /// Of CLONE_NEWUSER, and both or neither; `host_id` is in the node's ids.
  /// Empty: every id is mapped to itself.
  std::vector<IdMapping> uid_map;
  std::vector<IdMapping> gid_map;
  /// Who it is, in the namespaces that it joins or gets: 0 is root in its user
  /// namespace. Unset: the node's root still, and nobody, without capabilities,
  /// where the maps do not have that. Supplementary groups are dropped where
  /// `gid` is set.
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  /// Executing a program gives no right that it has not got. Source: prctl(2),
  /// PR_SET_NO_NEW_PRIVS.
  bool no_new_privs = false;
  /// The capabilities that it keeps, a bit for each, be it root or not: of these all that the
  /// keeper has are in its five sets, and no other one, for good. 0: none. Unset: those that
  /// execve(2) gives to `uid`. Source: capabilities(7); the numbers, linux/capability.h.
  std::optional<uint64_t> capabilities;
  /// A seccomp filter, a program of at most 4096 instructions (BPF_MAXINSNS), that holds from
  /// before the program is executed: it lets execveat through. Only with `no_new_privs`; the
  /// program is no script. Empty: none. Errors: kInvalidArgument where the kernel refuses it.
  /// Source: seccomp(2), SECCOMP_SET_MODE_FILTER.
  std::vector<sock_filter> seccomp;
  std::vector<std::pair<int, rlimit>> rlimits;
  std::optional<int> oom_score_adj;
  /// SIGPIPE is ignored by it, and by what it executes: for a program that writes to others who
  /// need not read. All other signals are at their defaults.
  bool ignore_sigpipe = false;
  /// Names this spawn for `SandboxContext::FindSpawned` after a restart of the
  /// engine, which says what its scope is: one of a pod has several containers. Empty: it cannot be
  /// found again.
  std::string tag;
};

/// A process of the host that the keeper watches.
/// Thread: any. Outlives the process itself.
class HostProcess {
 public:
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  virtual ~HostProcess() = default;

  virtual HostPid pid() const = 0;
  /// Clock ticks since boot; with the pid it names the process for ever.
  /// Source: proc(5), field 22 of /proc/PID/stat.
  virtual uint64_t start_time() const = 0;
  /// Sends a signal through the pidfd: never hits a reused pid.
  /// Errors: kNotFound when it has ended. Blocks: never.
  virtual Status Signal(int signal) = 0;
  /// How it ended, if it has.
  virtual std::optional<WaitStatus> Ended() const = 0;
  /// Waits for its end. Errors: kDeadlineExceeded; it goes on running.
  /// Thread: workers. Blocks: up to `limit`.
  virtual Result<WaitStatus> Wait(std::chrono::milliseconds limit) = 0;

 protected:
  HostProcess() = default;
};

}  // namespace gantry
