// SPDX-License-Identifier: Apache-2.0
//
// The OCI spec of a pod without a pause container, for a root of `PauseImage`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/id_mapping.h>

namespace gantry::gvisor {

struct PauseSpecRequest {
  /// A directory that exists; nothing is looked for in it.
  std::string root;
  /// Empty: the sentry's own.
  std::string hostname;
  /// The path of the pod's network namespace; empty: a new one. Unset: the node's.
  std::optional<std::string> network = "";
  std::map<std::string, std::string> sysctls;
  /// Of the pod's user namespace, which the sentry makes; both or neither.
  std::vector<IdMapping> uids{};
  std::vector<IdMapping> gids{};
  /// Those that sentries and the runsc command go by, and any others.
  std::map<std::string, std::string> annotations;
};

/// As JSON. The process is an ordinary user without capabilities, in new pid, ipc, uts and
/// mount namespaces. Of the sysctls a sentry takes note of `fs.nr_open` alone.
/// Bytes of the request that are no UTF-8 are replaced.
/// Source: OCI runtime-spec 1.2; runsc 20240729 and 2026-08, runsc/boot/loader.go.
std::string PauseSpec(const PauseSpecRequest& request);

}  // namespace gantry::gvisor
