// SPDX-License-Identifier: Apache-2.0
//
// What is in the cache, for `gantryctl wasm cache`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/wasm/cache/store.h"

namespace gantry::wasm {

/// As a table, those used last first. `now`: seconds since the epoch. Thread: any. Blocks: never.
std::string ListingText(const std::vector<ArtifactStore::Listed>& all, int64_t now);
/// An array of objects.
std::string ListingJson(const std::vector<ArtifactStore::Listed>& all);

}  // namespace gantry::wasm
