// SPDX-License-Identifier: Apache-2.0
//
// Starting a process. One call does it all: the child is born in its cgroup,
// joins namespaces, gets its descriptors, limits and identity, and the caller
// learns which step failed and why, or that the new program runs.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/os/process_id.h"

namespace gantry::os {

/// Descriptors are borrowed until the call returns. The child's steps are made
/// in the order of the members below.
struct SpawnRequest {
  /// The file to execute; a path with a slash. Empty: `argv[0]`. There is no
  /// search of PATH.
  std::string executable{};
  std::vector<std::string> argv{};
  /// The whole environment, `NAME=value`.
  std::vector<std::string> env{};

  /// A v2 cgroup's directory to be born in.
  std::optional<int> cgroup_fd{};
  /// `cgroup.procs` files (v1) that the child writes itself into.
  std::vector<std::string> cgroup_procs{};

  bool new_session = false;
  /// Becomes the controlling terminal; needs `new_session`.
  std::optional<int> controlling_tty_fd{};
  std::optional<int> oom_score_adj{};

  struct Limit {
    int resource;
    rlimit value;
  };

  std::vector<Limit> limits{};

  struct Namespace {
    int fd;
    /// CLONE_NEWNET and so on. A pid namespace would hold the child's children
    /// only, so it is refused.
    int type;
  };

  /// Joined in this order. `cwd` and `executable` are looked up after it.
  std::vector<Namespace> namespaces{};

  struct Descriptor {
    int fd;
    /// The child's number for it.
    int target;
  };

  /// All that the child gets. Of 0, 1 and 2 what is not named is /dev/null.
  std::vector<Descriptor> descriptors{};

  /// Empty: the caller's, or "/" after joining a mount namespace.
  std::string cwd{};
  /// Supplementary groups are dropped where `gid` is set.
  std::optional<gid_t> gid{};
  std::optional<uid_t> uid{};
  /// Sent to the child when the calling *thread* ends.
  std::optional<int> parent_death_signal{};
  bool no_new_privs = false;
  std::optional<mode_t> umask{};
};

struct SpawnResult {
  ProcessId process;
  UniqueFd pidfd;
};

/// A child that is on its way to its program.
struct PendingSpawn {
  ProcessId process;
  UniqueFd pidfd;
  /// Readable when the child has executed its program or failed to.
  UniqueFd status;
  /// What each of the child's steps is, for the error.
  std::vector<std::string> steps;
};

/// Makes the child and does not wait for it. The child has no signal blocked
/// and none ignored. For who may not block: a child in a frozen cgroup does
/// not reach its program before the thaw.
///
/// Errors: INVALID_ARGUMENT for a request that contradicts itself;
/// RESOURCE_EXHAUSTED where the kernel makes no further process.
/// Blocks: never. Thread: any. Needs Linux 5.3.
Result<PendingSpawn> BeginSpawn(const SpawnRequest& request);

/// Ends what `BeginSpawn` began, when `status` is readable.
///
/// Errors: the errno's code, with the failed step in the message (`exec '/x/y':
/// ENOENT`); then there is no child, it has been reaped. UNAVAILABLE where it
/// is not known yet; `pending` is as before.
/// Blocks: never.
Result<SpawnResult> FinishSpawn(PendingSpawn& pending);

/// Both. Errors: as above; DEADLINE_EXCEEDED where the child has not reached
/// its program within `deadline`: it has been sent SIGKILL.
/// Blocks: up to `deadline`.
Result<SpawnResult> SpawnProcess(const SpawnRequest& request,
                                 std::chrono::milliseconds deadline = std::chrono::seconds(10));

}  // namespace gantry::os
