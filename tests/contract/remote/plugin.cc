// SPDX-License-Identifier: Apache-2.0
//
// The plugin's descriptor.
#include <gantry/plugin.h>

#include "tests/contract/remote/backend.h"

GANTRY_PLUGIN("remote", "0.1.0", gantry::remote::MakeBackend);
