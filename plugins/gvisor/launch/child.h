// SPDX-License-Identifier: Apache-2.0
//
// What a sentry and a gofer have in common as processes of the host.
#pragma once

#include <sys/resource.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/process/rights.h>
#include <gantry/toolkit/process/spawn_builder.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/launch/log_files.h"

namespace gantry::gvisor {

struct Spec;

/// What the launch of each process of a sandbox needs.
struct LaunchPlace {
  /// Absolute.
  std::string bundle;
  /// Directories to be born in.
  std::vector<std::string> cgroups;
  /// Of runsc, from `Flags::Arguments`.
  std::vector<std::string> flags;
};

/// New namespaces of its own, user namespace and ids as the spec has them, and the limits that
/// gVisor wants. `network`: it gets an empty one, else the starter's, or one that it joins.
/// Errors: kNotFound: there is no user namespace at the spec's path.
Status Isolate(const Spec& spec, bool network, SpawnRequest& request);

/// The limits that gVisor wants, as far as they may be raised.
std::vector<std::pair<int, rlimit>> SentryLimits();

/// The debug log of the command `boot` or `gofer`, where one is asked for. Errors: it cannot be
/// opened.
Status AddDebugLog(const LogFlags& logs, const LogOwner& owner, std::string_view command,
                   SpawnBuilder& child);

}  // namespace gantry::gvisor
