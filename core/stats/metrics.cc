// SPDX-License-Identifier: Apache-2.0
#include "core/stats/metrics.h"

namespace gantry::stats {

Result<TypedMessage> ReadMetrics(const os::Cgroup& cgroup) {
  if (cgroup.is_unified()) {
    GANTRY_TRY(const os::CgroupV2Stats stats, os::ReadCgroupV2Stats(cgroup));
    return TypedMessage{.type_url = std::string(kMetricsV2), .value = EncodeMetrics(stats)};
  }
  GANTRY_TRY(const os::CgroupV1Stats stats, os::ReadCgroupV1Stats(cgroup));
  return TypedMessage{.type_url = std::string(kMetricsV1), .value = EncodeMetrics(stats)};
}

}  // namespace gantry::stats
