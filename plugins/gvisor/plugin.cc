// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>

#include "plugins/gvisor/backend.h"

GANTRY_PLUGIN(gantry::gvisor::kBackendName, gantry::gvisor::kBackendVersion,
              gantry::gvisor::MakeBackend);
