// SPDX-License-Identifier: Apache-2.0
//
// For the backend: the module of a container's image, where the image has it as a layer of its own.
// A program of its own, gantry-wasm-fetch, asks containerd; what it says and gives counts as much
// as what an image says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/fetch/manifest.h"
#include "plugins/wasm/module/bytes.h"

namespace gantry::wasm::fetch {

/// Where containerd listens unless its configuration says otherwise.
/// Source: containerd 2.3, defaults/defaults_unix.go.
inline constexpr const char* kContainerdAddress = "/run/containerd/containerd.sock";

struct ImageQuestion {
  /// containerd's socket for gRPC: an absolute path.
  std::string address = kContainerdAddress;
  /// containerd's namespace, and the container's id there.
  std::string ns;
  std::string container;
  /// The image's name there, in place of a container.
  std::string image{};
  /// The path that the container's first argument is: of several modules, the one of that name.
  std::string program;
  /// Of the module.
  uint64_t max_bytes = uint64_t{256} << 20;
  /// For the whole answer; what is left for the call of the core counts where that is less.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
};

struct FoundImage {
  Platform platform;
  size_t layers = 0;
  /// None: the program is a file of the root file system.
  std::optional<ModuleBytes> module;

  bool IsForWasm() const { return platform.architecture == "wasm"; }
};

/// Asks containerd (asking.h). `program`: gantry-wasm-fetch, open, as
/// `OpenHelper("gantry-wasm-fetch")` gives it; borrowed. To be asked only where the root file
/// system has no such file as the container's first argument: it takes some tens of milliseconds.
/// Errors: those of `FetchModule`; kUnavailable: containerd cannot be reached at that address;
/// kDeadlineExceeded; kInternal: the program has ended without an answer, or given what it does
/// not say; those of the context.
/// Thread: workers. Blocks: up to the limit, and two seconds for the program's end.
Result<FoundImage> FindImageModule(SandboxContext& context, const UniqueFd& program,
                                   const ImageQuestion& question);

}  // namespace gantry::wasm::fetch
