// SPDX-License-Identifier: Apache-2.0
//
// Bundles: whether a path that a client sends may be used as one, and its other name.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::oci {

/// `path` is absolute, without `.`, `..` and doubled slashes, and names a
/// directory, not a link to one, that strangers may not write to.
/// Errors: kInvalidArgument; kNotFound when nothing is there.
/// Blocks: for the file system. Thread: workers.
Status CheckBundle(const std::string& path);

/// What containerd calls a bundle while it deletes it. It does so without the shim where its own
/// caller's time is up during a start; a mount below keeps the folder there, and nobody tries
/// again. Source: containerd 2.3, core/runtime/v2/bundle.go, atomicDelete.
std::string NameWhileDeleted(const std::string& path);

}  // namespace gantry::oci
