// SPDX-License-Identifier: Apache-2.0
//
// Files of a cgroup, whose processes and devices are a container's.
#include <string>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/cgroup/statistics.h>

#include "core/toolkit/cgroup/parse.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  cgroup::FieldIn(input, "populated");
  cgroup::ParseCgroupNumber(input);
  cgroup::ParseCgroupCounters(input);
  cgroup::ParseCgroupRdma(input);
  size_t bytes = 0;
  for (const std::string_view word : cgroup::CgroupWords(input)) {
    bytes += word.size();
    uint64_t major = 0;
    uint64_t minor = 0;
    cgroup::ParseDeviceNumbers(word, major, minor);
  }
  Require(bytes <= input.size(), "words are parts of their line");
}

}  // namespace gantry::fuzz
