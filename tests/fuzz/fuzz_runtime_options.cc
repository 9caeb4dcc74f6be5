// SPDX-License-Identifier: Apache-2.0
//
// Runtime options: the runc message, the message with a TOML table in it, and
// the table itself. The first byte says which.
#include <string>

#include "core/oci/runtime_options.h"
#include "core/oci/toml.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const uint8_t which = TakeByte(input);
  if (which % 3 == 0) {
    IgnoreError(oci::TomlToJson(input, "options"), "it only must not crash");
    return;
  }
  const char* const type =
      which % 3 == 1 ? "containerd.runc.v1.Options" : "runtimeoptions.v1.Options";
  const Result<oci::RuntimeOptions> options = oci::DecodeRuntimeOptions(type, input);
  if (!options) {
    return;
  }
  const Result<std::string> merged = oci::MergeOptions(R"({"BinaryName":"crun"})", options->json);
  Require(merged.has_value(), "decoded options are an object");
  const Result<std::string> again = oci::MergeOptions(*merged, options->json);
  Require(again.has_value() && *again == *merged, "the same options change nothing");
}

}  // namespace gantry::fuzz
