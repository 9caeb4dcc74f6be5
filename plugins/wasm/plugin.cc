// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>
#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/artifact_source.h"
#include "plugins/wasm/backend.h"

namespace {

gantry::Result<std::unique_ptr<gantry::SandboxBackend>> Make(const std::string& options_json) {
  return gantry::wasm::MakeBackend(options_json,
                                   {gantry::OpenHelper, gantry::wasm::MakeArtifactSource});
}

}  // namespace

GANTRY_PLUGIN(gantry::wasm::kBackendName, gantry::wasm::kBackendVersion, Make);
