// SPDX-License-Identifier: Apache-2.0
//
// Which layer of an image is the program. Thread: any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "plugins/wasm/fetch/manifest.h"

namespace gantry::wasm::fetch {

enum class LayerKind {
  /// Files of the root file system.
  kFiles,
  /// A module or component, as it is.
  kWasm,
  kUnknown,
};

/// Source: image-spec 1.1, layer.md; Docker's image manifest 2.2; for modules the media types that
/// are in use: CNCF's, Bytecode Alliance's, and that of wasm-to-oci.
LayerKind LayerKindOf(std::string_view media_type);
/// The types of modules, for errors.
std::string WasmLayerTypes();

/// The first bytes of a blob, at most so many.
using ReadHead = std::function<Result<std::string>(const Blob& blob, size_t most)>;

/// The layer that is the program; none: the image has no such layer, its program is a file. Of
/// several: that whose title is `program`, the path of the container's first argument, else the
/// only one that is a component, for which `head` is asked.
/// Errors: kFailedPrecondition: a layer of an unknown kind, in an image for wasm or with a module,
/// which is named; several that could be meant, which are listed; those of `head`.
Result<std::optional<Layer>> ChooseLayer(const std::vector<Layer>& layers, const Platform& platform,
                                         std::string_view program, const ReadHead& head);

}  // namespace gantry::wasm::fetch
