// SPDX-License-Identifier: Apache-2.0
//
// Starting a process. One call does it all: the child is born in its cgroup,
// joins namespaces, gets new ones, its descriptors, limits and identity, and the
// caller learns which step failed and why, or that the new program runs.
//
// With new namespaces, or a pid namespace that is joined, there are two children. The first
// does what needs the caller's privileges, makes the second, tells of it and ends: a pid
// namespace is for a child only, and what is joined has to be joined before the new user
// namespace takes the right to. CLONE_PARENT makes the second a child of the
// caller, too. It waits until the caller has written its maps and released it, and
// ends by itself where the caller gives it up.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/id_mapping.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// Descriptors are borrowed until the call returns. The child's steps are made
/// in the order of the members below.
struct SpawnRequest {
  /// The file to execute; a path with a slash. Empty: `argv[0]`. There is no
  /// search of PATH.
  std::string executable{};
  /// Open, and executed in place of a path, which then is but a name.
  std::optional<int> program_fd{};
  std::vector<std::string> argv{};
  /// The whole environment, `NAME=value`.
  std::vector<std::string> env{};

  /// A v2 cgroup's directory to be born in.
  std::optional<int> cgroup_fd{};
  /// `tasks` files (v1) that the child, which has one thread, writes itself into. By that of
  /// `cgroup.procs` it would wait for a grace period of RCU, 4 to 20 ms, as no thread of the node
  /// may be born meanwhile. Source: Linux 6.18, kernel/cgroup/cgroup.c, cgroup_procs_write_start.
  std::vector<std::string> cgroup_tasks{};

  std::optional<int> oom_score_adj{};

  struct Limit {
    int resource = 0;
    rlimit value{};
    /// Where it may not be set, the nearest that may is; it never fails.
    bool as_far_as_allowed = false;
  };

  std::vector<Limit> limits{};

  struct Namespace {
    int fd;
    /// CLONE_NEWNET and so on; with a pidfd any of them together (Linux 5.8). With
    /// CLONE_NEWPID there are two children, as with new namespaces: who joins a pid
    /// namespace stays in his own, and only what he makes is born in it.
    int type;
  };

  /// Joined in this order. `cwd` and `executable` are looked up after it; the
  /// latter before a user namespace is joined or made, in which the way to it may
  /// be barred.
  std::vector<Namespace> namespaces{};

  /// CLONE_NEW* flags but CLONE_NEWTIME, none of a type that is joined. With
  /// CLONE_NEWUSER all others of them belong to the new user namespace.
  int new_namespaces = 0;
  /// Of a new user namespace; `host_id` is in the caller's ids. Both or neither:
  /// then the caller's ids are mapped to themselves.
  std::vector<IdMapping> uid_map{};
  std::vector<IdMapping> gid_map{};

  /// MS_PRIVATE or MS_SLAVE, of all mounts of a new mount namespace; 0: nothing is done.
  unsigned propagation = 0;

  bool new_session = false;
  /// Becomes the controlling terminal; needs `new_session`.
  std::optional<int> controlling_tty_fd{};

  struct Descriptor {
    int fd;
    /// The child's number for it.
    int target;
  };

  /// All that the child gets. Of 0, 1 and 2 what is not named is /dev/null.
  std::vector<Descriptor> descriptors{};

  /// In a mount namespace of its own, with nothing else in it but `root_paths`. The program is
  /// opened before it, and its libraries are looked up in it.
  bool empty_root = false;
  std::vector<RootPath> root_paths{};
  /// Empty: the caller's, or "/" after joining a mount namespace or with `empty_root`.
  std::string cwd{};
  /// Supplementary groups are dropped where `gid` is set.
  std::optional<gid_t> gid{};
  std::optional<uid_t> uid{};
  /// Sent to the child when the calling *thread* ends.
  std::optional<int> parent_death_signal{};
  /// Bit N: capability N. What the caller has of them is in all five sets, and no other is.
  std::optional<uint64_t> capabilities{};
  bool no_new_privs = false;
  /// Holds for the program's execution (`execveat`) already; needs `no_new_privs`.
  std::vector<sock_filter> seccomp{};
  std::optional<mode_t> umask{};
  /// By the child and what it executes; its other signals are at their defaults.
  bool ignore_sigpipe = false;
};

struct SpawnResult {
  ProcessId process;
  UniqueFd pidfd;
};

/// A child that is on its way to its program.
struct PendingSpawn {
  /// Of a child with new namespaces, or in a pid namespace that is joined.
  struct Birth {
    /// It is still to come: `process` is the first child.
    bool due = false;
    /// The first child, afterwards.
    UniqueFd maker;
    /// What goes into its `uid_map` and `gid_map`; empty: nothing.
    std::string uid_map;
    std::string gid_map;
    /// The step at which it waits for that.
    size_t release_step = 0;
  };

  ProcessId process;
  UniqueFd pidfd;
  /// Readable when the child is born, has executed its program or failed to.
  UniqueFd status;
  /// What each of the child's steps is, for the error.
  std::vector<std::string> steps;
  /// The one that sets the seccomp filter, if there is one.
  std::optional<size_t> filter_step;
  Birth birth;
};

/// Makes the child and does not wait for it. The child has no signal blocked
/// and none ignored; before it enters a cgroup by writing or joins a namespace it closes
/// what of the caller's descriptors is not named in the request (Linux 5.9), and nobody
/// without CAP_SYS_PTRACE here looks into it before its program runs. For who may not block: a
/// child in a frozen cgroup does not reach its program before the thaw.
///
/// Errors: INVALID_ARGUMENT for a request that contradicts itself;
/// RESOURCE_EXHAUSTED where the kernel makes no further process.
/// Blocks: never. Thread: any. Needs Linux 5.3.
Result<PendingSpawn> BeginSpawn(const SpawnRequest& request);

/// Goes on with what `BeginSpawn` began, when `status` is readable or `process`
/// has ended. `may_live` is called when the second child, if there is one, is born, before
/// it does anything; false: it is killed.
///
/// Errors: the errno's code, with the failed step in the message (`exec '/x/y':
/// ENOENT`); then there is no child, it has been reaped. UNAVAILABLE where it
/// is not known yet; `pending` may have been born. ABORTED where it was killed
/// before its birth or by `may_live`: what is left of it ends when `pending` does,
/// and who collects all children collects that.
/// Blocks: never.
Result<SpawnResult> FinishSpawn(PendingSpawn& pending, const std::function<bool()>& may_live = {});

/// Both. Errors: as above; DEADLINE_EXCEEDED where the child has not reached
/// its program within `deadline`: it has been sent SIGKILL.
/// Blocks: up to `deadline`.
Result<SpawnResult> SpawnProcess(const SpawnRequest& request,
                                 std::chrono::milliseconds deadline = std::chrono::seconds(10));

}  // namespace gantry::os
