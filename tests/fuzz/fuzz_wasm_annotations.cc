// SPDX-License-Identifier: Apache-2.0
//
// An annotation of a pod: its key, a line feed, its value.
#include <algorithm>
#include <string>

#include "plugins/wasm/annotations.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string value(input.substr(std::min(end + 1, input.size())));
  oci::Spec spec;
  spec.annotations[std::string(input.substr(0, end))] = value;
  oci::ProcessSpec process;
  process.env = {"GANTRY_WASM_LISTEN=" + value};
  spec.resources_json = "{}";
  const auto claim = wasm::ClaimOf(spec);
  Require(claim || claim.error().message.size() < 1000, "an error is short");
  for (const auto& one : {oci::ProcessSpec(), process}) {
    const auto settings = wasm::SettingsOf(spec, one, {});
    Require(settings || settings.error().code == Code::kInvalidArgument, "it is the input's fault");
    Require(settings || settings.error().message.size() < 1000, "an error is short");
    Require(!settings || settings->listen.empty() || wasm::CheckListen(settings->listen),
            "an address is one");
  }
}

}  // namespace gantry::fuzz
