// SPDX-License-Identifier: Apache-2.0
//
// What the program of a process is: a WebAssembly module or component, or one for the kernel.
#pragma once

#include <optional>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/wasm/annotations.h"
#include "plugins/wasm/module/image_file.h"
#include "plugins/wasm/root_view.h"

namespace gantry::wasm {

struct Program {
  /// A module or a component; none: the kernel executes it, or says what is wrong with it.
  std::optional<ImageFile> file;
  /// Where it is in the container.
  std::string path;
  /// Of `args[0]` written as `path#function`; empty: none is named there.
  std::string entry;
  bool component = false;
  /// Nothing of that name can be seen from here, and no annotation says what it is.
  bool missing = false;
};

/// `args[0]` as the name of a file and, where it is written as `path#function`, the function.
struct Named {
  std::string path;
  std::string entry;
};

Named NamedIn(const std::string& argument);

/// `args[0]` is looked up in the container's folder and then in its PATH; a program for the kernel
/// where execvp(3) finds it.
/// Errors: kNotFound: what is to be a module is not there; kFailedPrecondition: it is neither a
/// module nor a program, with what it looks like and what is accepted, or something is mounted
/// over it; kPermissionDenied: a program that nobody may execute; kInvalidArgument: no function
/// behind `#`.
Result<Program> FindProgram(const RootView& root, const oci::ProcessSpec& process, Claim claim);

}  // namespace gantry::wasm
