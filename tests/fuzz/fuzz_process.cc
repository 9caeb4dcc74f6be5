// SPDX-License-Identifier: Apache-2.0
//
// The `process` object of an Exec request.
#include <string>

#include <gantry/toolkit/oci/spec.h>

#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const Result<oci::ProcessSpec> process = oci::ParseProcess(std::string(input));
  if (!process) {
    return;
  }
  for (const bool terminal : {false, true}) {
    const Result<std::string> text = oci::WithTerminal(process->json, terminal);
    Require(text.has_value(), "an accepted process can be changed");
    const Result<oci::ProcessSpec> again = oci::ParseProcess(*text);
    Require(again.has_value() && again->terminal == terminal && again->args == process->args,
            "only the terminal is changed");
  }
}

}  // namespace gantry::fuzz
