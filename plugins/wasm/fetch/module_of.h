// SPDX-License-Identifier: Apache-2.0
//
// From a container to the module that is in its image: container, image, index, manifest, config,
// layer. Nothing that comes is believed: documents are bounded, and each blob has the digest and
// the size that its descriptor says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/wasm/fetch/manifest.h"
#include "plugins/wasm/fetch/store.h"

namespace gantry::wasm::fetch {

struct ModuleRequest {
  /// Whose image it is; or, where it is empty, `image`.
  std::string container;
  /// The path that the container's first argument is, without what is not of the path.
  std::string program;
  /// Of the module.
  uint64_t max_bytes = 0;
  /// In Go's words: which manifest of an index is meant where none is for wasm.
  std::string host_architecture;
  std::string image{};
};

/// What the image is, and the layer that is its program; none: that is a file.
struct ImageAnswer {
  Platform platform;
  std::vector<Blob> layers;
  std::optional<Blob> module;
};

/// Writes the module's bytes to the descriptor `output`, which is borrowed and has something only
/// where there is a module; after an error it may have a part.
/// Errors: those of the store; kFailedPrecondition: there is no image, or none of a form that is
/// known; kInvalidArgument: a document of the image is wrong; kDataLoss: a blob is not what its
/// digest says; kResourceExhausted: the module or a document is above its limit; the errno's.
/// Thread: any. Blocks: as the store does.
Result<ImageAnswer> FetchModule(Store& store, const ModuleRequest& request, int output);

}  // namespace gantry::wasm::fetch
