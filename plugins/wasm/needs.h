// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <gantry/backend.h>

#include "plugins/wasm/backend.h"

namespace gantry::wasm {

/// What the backend needs of the node, and what it has in itself. Blocks: up to 2 s for each
/// engine.
std::vector<NodeNeed> FindNeeds(const Parts& parts);

/// Its second engine. Blocks: up to 2 s.
NodeNeed WasmEdgeNeed(const Parts& parts);

}  // namespace gantry::wasm
