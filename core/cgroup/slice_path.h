// SPDX-License-Identifier: Apache-2.0
//
// Where systemd keeps a slice among cgroups.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::cgroup {

inline constexpr std::string_view kSliceSuffix = ".slice";

/// Its path from the root of the hierarchy on: `a-b.slice` is `/a.slice/a-b.slice`, and `-.slice`
/// the root itself. Errors: kInvalidArgument: not the name of a slice. Source: systemd.slice(5).
Result<std::string> SlicePath(std::string_view slice);

}  // namespace gantry::cgroup
