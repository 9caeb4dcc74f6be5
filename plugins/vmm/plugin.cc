// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>
#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/vmm/backend.h"
#include "plugins/vmm/machine/image.h"
#include "plugins/vmm/pod/make_sandbox.h"

namespace {

gantry::Result<std::unique_ptr<gantry::SandboxBackend>> Make(const std::string& options_json) {
  gantry::vmm::Parts parts;
  parts.open_program = gantry::OpenHelper;
  parts.make_sandbox = gantry::vmm::MakeVmmSandbox;
  parts.images = gantry::vmm::InstalledImages();
  return gantry::vmm::MakeBackend(options_json, std::move(parts));
}

}  // namespace

GANTRY_PLUGIN(gantry::vmm::kBackendName, gantry::vmm::kBackendVersion, Make);
