// SPDX-License-Identifier: Apache-2.0
//
// Files of a cgroup, whose processes and devices are a container's.
#include <string>

#include <gantry/toolkit/cgroup/notify.h>

#include "core/cgroup/cgroup_parse.h"
#include "core/cgroup/cgroup_stats.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  cgroup::KeyedNumber(input, "populated");
  os::ParseCgroupNumber(input);
  os::ParseCgroupCounters(input);
  os::ParseCgroupRdma(input);
  size_t bytes = 0;
  for (const std::string_view word : os::CgroupWords(input)) {
    bytes += word.size();
    uint64_t major = 0;
    uint64_t minor = 0;
    os::ParseDeviceNumbers(word, major, minor);
  }
  Require(bytes <= input.size(), "words are parts of their line");
}

}  // namespace gantry::fuzz
