// SPDX-License-Identifier: Apache-2.0
//
// What a sentry is booted with and cannot be given later. A pod may take one that waits exactly
// where a sentry booted for it would have had the same, but for what is handed over: its name,
// its network, its place.
// Source: runsc 20240729 and 2026-08, runsc/boot/loader.go, New.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/launch/runsc.h"
#include "plugins/gvisor/pause/pause_spec.h"

namespace gantry::gvisor {

/// Thread: any; plain data.
struct WarmKey {
  /// runsc's and the sentry's files.
  std::string build;
  std::vector<std::string> flags;
  /// With what it logs to.
  LogFlags logs{};
  /// The spec of its root: user namespace, sysctls, what annotations ask of a sentry, whether
  /// there is a network namespace.
  std::string root;
  /// Its memory and processors, as it believes them to be and as its cgroups allow.
  std::string machine;

  bool operator==(const WarmKey&) const = default;
};

/// For a sandbox with gantry's own root in these cgroups; none: those of this process.
/// Blocks: on files.
WarmKey MakeWarmKey(const Runsc& runsc, const Flags& flags, const PauseSpecRequest& root,
                    const std::vector<std::string>& cgroups);

/// The files of a build as part of a key.
std::string BuildOf(const Runsc& runsc);

/// What of the two differs, for a log; empty: nothing.
std::string_view DifferenceOf(const WarmKey& one, const WarmKey& other);

}  // namespace gantry::gvisor
