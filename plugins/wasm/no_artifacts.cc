// SPDX-License-Identifier: Apache-2.0
//
// Of a build without a WebAssembly engine.
#include "plugins/wasm/artifact_source.h"

namespace gantry::wasm {

std::unique_ptr<ArtifactSource> MakeArtifactSource(SandboxContext&, const Options&) {
  return nullptr;
}

}  // namespace gantry::wasm
