// SPDX-License-Identifier: Apache-2.0
//
// config.json: as the engine reads it, and as the shim looks for a group in it.
#include <string>

#include "core/oci/spec.h"
#include "core/shim/group.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const std::string group = shim::GroupOf(input);
  Require(group.size() <= input.size(), "a group is a part of the text");
  const Result<oci::Spec> spec = oci::ParseSpec(std::string(input), "config.json");
  if (!spec) {
    Require(spec.error().code == Code::kInvalidArgument, "what is wrong is the caller's fault");
    return;
  }
  Require(!spec->process.args.empty() && !spec->process.args.front().empty(),
          "a process has a program");
  Require(spec->json == input, "the text is passed on as it is");
  Require(spec->RootPath("/b").starts_with('/'), "the root is absolute");
}

}  // namespace gantry::fuzz
