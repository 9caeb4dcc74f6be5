// SPDX-License-Identifier: Apache-2.0
//
// gantry.yaml.
#include <string>

#include "core/config/config.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const Result<config::Config> config = config::Parse(std::string(input), "gantry.yaml");
  if (!config) {
    Require(config.error().code == Code::kInvalidArgument, "what is wrong is the file's fault");
    return;
  }
  Require(config->FindHandler("") != nullptr, "there is a default handler");
  Require(config->limits.worker_threads >= 1, "limits are within their ranges");
}

}  // namespace gantry::fuzz
