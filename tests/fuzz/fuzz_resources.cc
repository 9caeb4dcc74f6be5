// SPDX-License-Identifier: Apache-2.0
//
// LinuxResources of an Update request.
#include <gantry/toolkit/oci/resources.h>

#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const Result<cgroup::CgroupResources> resources = oci::ParseResources(input);
  Require(resources.has_value() || resources.error().code == Code::kInvalidArgument,
          "what is wrong is the caller's fault");
}

}  // namespace gantry::fuzz
