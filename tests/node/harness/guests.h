// SPDX-License-Identifier: Apache-2.0
//
// The guests of tests/guests, for containers of the handler `wasm`.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/node/harness/ctr.h"

namespace gantry::node {

/// Where they are on the node: $GANTRY_E2E_GUESTS.
inline std::string GuestsFolder() {
  const char* const folder = std::getenv("GANTRY_E2E_GUESTS");  // NOLINT(concurrency-mt-unsafe)
  return folder == nullptr ? "" : folder;
}

/// The command of `tool`, of those in /guests.
inline Words Tool(Words words) {
  words.insert(words.begin(), "/guests/tool.wasm");
  return words;
}

/// For `ctr run`: `flags`, and the guests in /guests.
inline Words WithGuests(Words flags) {
  flags.insert(flags.end(),
               {"--mount", "type=bind,src=" + GuestsFolder() + ",dst=/guests,options=rbind:ro"});
  return flags;
}

}  // namespace gantry::node
