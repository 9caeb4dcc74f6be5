// SPDX-License-Identifier: Apache-2.0
//
// Programs that a plugin carries in itself, for `SpawnRequest::program`: what
// `gantry_add_plugin(NAME ... HELPERS target...)` names. No path has to be configured, a new
// plugin comes with its own helpers, and they run from memory that nobody can write: a file of
// the node's could be overwritten from a container by /proc/PID/exe.
// Source: CVE-2019-5736; memfd_create(2).
#pragma once

#include <span>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// The helper of that name, sealed, for `SpawnRequest::program`. `name`: the target's in CMake.
/// There is one copy of each for all calls. Owner: the caller.
/// Errors: kNotFound where the plugin has no such helper; as `SealedMemfd`.
/// Thread: any. Blocks: the first time for a copy of the program.
/// Defined where HELPERS is given; without it the plugin does not link.
Result<UniqueFd> OpenHelper(std::string_view name);

/// What CMake makes of HELPERS. Not to be used by hand.
struct CarriedProgram {
  const char* name;
  const char* begin;
  const char* end;
};

Result<UniqueFd> OpenCarried(std::span<const CarriedProgram> all, std::string_view name);

}  // namespace gantry
