// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>

#include "plugins/runc/backend.h"

GANTRY_PLUGIN(gantry::runc::kBackendName, gantry::runc::kBackendVersion, gantry::runc::MakeBackend);
