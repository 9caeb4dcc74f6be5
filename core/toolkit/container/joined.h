// SPDX-License-Identifier: Apache-2.0
//
// The container that a process joins, as its maker finds it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "core/toolkit/container/affinity.h"

namespace gantry::container {

struct Joined {
  /// In the maker's pid namespace.
  pid_t init = 0;
  /// Of cgroups that the maker is not in itself, one for each hierarchy.
  std::vector<std::string> cgroup_dirs;
  /// Before they are entered, and behind it.
  CpuMask initial_cpus;
  CpuMask final_cpus;
};

/// The container of the process that the pidfd `init` is of. Errors: kNotFound: it has ended.
Result<Joined> FindJoined(int init, const oci::ProcessSpec& process);

/// Whether the process has not ended, so that what was opened by its number was its own.
/// Errors: kNotFound.
Status CheckStillThere(int init);

/// The calling process, and what it makes from then on. Before it enters a namespace.
Status EnterCgroups(const Joined& joined);

}  // namespace gantry::container
