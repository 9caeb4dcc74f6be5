// SPDX-License-Identifier: Apache-2.0
//
// Whether a path that a client sends may be used as a bundle.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::oci {

/// `path` is absolute, without `.`, `..` and doubled slashes, and names a
/// directory, not a link to one, that strangers may not write to.
/// Errors: kInvalidArgument; kNotFound when nothing is there.
/// Blocks: for the file system. Thread: workers.
Status CheckBundle(const std::string& path);

}  // namespace gantry::oci
