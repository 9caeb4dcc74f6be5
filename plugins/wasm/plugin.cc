// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>
#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/artifact_source.h"
#include "plugins/wasm/backend.h"
#include "plugins/wasm/launch.h"

namespace {

gantry::Result<std::unique_ptr<gantry::SandboxBackend>> Make(const std::string& options_json) {
  return gantry::wasm::MakeBackend(options_json,
                                   {.open_program = gantry::OpenHelper,
                                    .make_artifacts = gantry::wasm::MakeArtifactSource,
                                    .find_in_image = gantry::wasm::MakeFindInImage()});
}

}  // namespace

GANTRY_PLUGIN(gantry::wasm::kBackendName, gantry::wasm::kBackendVersion, Make);
