// SPDX-License-Identifier: Apache-2.0
#include "core/link/rlimit.h"

#include <sys/resource.h>

#include <algorithm>

namespace gantry::link {

std::vector<Rlimit> OwnRlimits() {
  std::vector<Rlimit> limits;
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit now{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0) {
      limits.push_back({resource, now.rlim_cur, now.rlim_max});
    }
  }
  return limits;
}

std::vector<Rlimit> ValidRlimits(const std::vector<Rlimit>& said) {
  std::vector<Rlimit> valid;
  for (const Rlimit& one : said) {
    if (one.resource >= 0 && one.resource < RLIM_NLIMITS && one.soft <= one.hard &&
        !std::ranges::contains(valid, one.resource, &Rlimit::resource)) {
      valid.push_back(one);
    }
  }
  return valid;
}

}  // namespace gantry::link
