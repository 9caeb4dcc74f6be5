// SPDX-License-Identifier: Apache-2.0
//
// Starting a process. One call does it all: the child is born in its cgroup,
// joins namespaces, gets its descriptors, limits and identity, and the caller
// learns which step failed and why, or that the new program runs.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// One process for all time: a number is reused, the pair is not.
struct ProcessId {
  pid_t pid = 0;
  /// Clock ticks since boot; 0: unknown.
  uint64_t start_time = 0;

  auto operator<=>(const ProcessId&) const = default;
};

/// Descriptors are borrowed. The child's steps are made in the order of the
/// members below.
struct SpawnRequest {
  /// The file to execute; a path with a slash. Empty: `argv[0]`. There is no
  /// search of PATH.
  std::string executable;
  std::vector<std::string> argv;
  /// The whole environment, `NAME=value`.
  std::vector<std::string> env;

  /// A v2 cgroup's directory to be born in.
  std::optional<int> cgroup_fd;
  /// `cgroup.procs` files (v1) that the child writes itself into.
  std::vector<std::string> cgroup_procs;

  bool new_session = false;
  std::optional<int> oom_score_adj;

  struct Limit {
    int resource;
    rlimit value;
  };

  std::vector<Limit> limits;

  struct Namespace {
    int fd;
    /// CLONE_NEWNET and so on. A pid namespace would hold the child's children
    /// only, so it is refused.
    int type;
  };

  /// Joined in this order. `cwd` and `executable` are looked up after it.
  std::vector<Namespace> namespaces;

  /// Becomes the controlling terminal; needs `new_session`.
  std::optional<int> controlling_tty_fd;

  struct Descriptor {
    int fd;
    /// The child's number for it.
    int target;
  };

  /// All that the child gets. Of 0, 1 and 2 what is not named is /dev/null.
  std::vector<Descriptor> descriptors;

  /// Empty: the caller's, or "/" after joining a mount namespace.
  std::string cwd;
  /// Supplementary groups are dropped where `gid` is set.
  std::optional<gid_t> gid;
  std::optional<uid_t> uid;
  /// Sent to the child when the calling *thread* ends.
  std::optional<int> parent_death_signal;
  bool no_new_privs = false;
};

struct SpawnResult {
  ProcessId process;
  UniqueFd pidfd;
};

/// Starts a process. The child has no signal blocked and none ignored.
///
/// Errors: the errno's code, with the failed step in the message (`exec '/x/y':
/// ENOENT`); then there is no child, it has been reaped. INVALID_ARGUMENT for a
/// request that contradicts itself.
/// Blocks: until the child has executed the program (a slow disk, a frozen cgroup).
/// Thread: any. Needs Linux 5.3.
Result<SpawnResult> SpawnProcess(const SpawnRequest& request);

}  // namespace gantry::os
