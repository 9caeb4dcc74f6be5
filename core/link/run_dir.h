// SPDX-License-Identifier: Apache-2.0
//
// Whose a path is. Who owns the run directory, or may write in one of its parents, can be the
// keeper to all others: gets what containers are started with, and answers what he likes. Who
// may change a program that the keeper is to execute has all that the keeper has.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::link {

/// Whether only root, or who runs this, can put anything in `dir`, or another directory in
/// its place: the owner of it, of all its parents and of links among them; none of them writable
/// for group or others, but parents with the sticky bit (/tmp). Errors:
/// kPermissionDenied with what to do; the errno's (kNotFound where it is absent).
Status CheckRunDir(const std::string& dir);

/// The same of a program that root is told to execute, and of the folder in which it lies; those
/// above are not looked at: a tree that a user has built with sudo is his. So it is to be executed
/// by this descriptor, open for reading: `path` may lead elsewhere by then. Errors: also
/// kInvalidArgument for what is no file.
Result<UniqueFd> OpenProgram(const std::string& path);

/// As `OpenProgram`, of what cannot be executed by a descriptor, such as a script.
Status CheckProgram(const std::string& path);

/// Connects to the socket `name` in `dir`, after `CheckRunDir`, and looks who listens: root,
/// or who runs this. Errors: as above; kPermissionDenied; kNotFound and kUnavailable where
/// nobody listens.
Result<UniqueFd> ConnectIn(const std::string& dir, const std::string& name);

}  // namespace gantry::link
