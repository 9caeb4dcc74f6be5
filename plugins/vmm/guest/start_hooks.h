// SPDX-License-Identifier: Apache-2.0
//
// The hooks of config.json that are programs of the container's: `startContainer`. Each is run in
// the container as whom its program will be, when the gate is opened and before the program is
// executed, and reads the container's state.
// Source: opencontainers/runtime-spec 1.2, runtime.md (lifecycle), config.md (POSIX-platform
// hooks).
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::vmm::guest {

/// Whose hooks they are. Borrowed.
struct HookedContainer {
  const std::string& id;
  const std::string& bundle;
  const oci::Spec& spec;
  /// A pidfd of the process that waits at its gate.
  int init = -1;
};

/// Whether there may be some: a look at the text, as the host writes it, which most containers need
/// no second reading of.
inline bool HasStartHooks(std::string_view spec_json) {
  return spec_json.contains("\"startContainer\"");
}

/// One after the other; none: nothing is done. Errors: kInvalidArgument: it is none, or there is no
/// such program in the container; kInternal with its status and the last that it said;
/// kDeadlineExceeded: its timeout, or what all of them have together. Then no more are run, and the
/// one that ran has ended. Blocks: as long as they run. Thread: the only one of its process, which
/// has no other children of its own.
Status RunStartHooks(const HookedContainer& container);

}  // namespace gantry::vmm::guest
