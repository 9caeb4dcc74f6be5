// SPDX-License-Identifier: Apache-2.0
#include "core/stats/metrics.h"

namespace gantry::stats {

Result<TypedMessage> ReadMetrics(const cgroup::Cgroup& cgroup) {
  if (cgroup.is_unified()) {
    GANTRY_TRY(const cgroup::CgroupV2Stats stats, cgroup::ReadCgroupV2Stats(cgroup));
    return TypedMessage{.type_url = std::string(kMetricsV2), .value = EncodeMetrics(stats)};
  }
  GANTRY_TRY(const cgroup::CgroupV1Stats stats, cgroup::ReadCgroupV1Stats(cgroup));
  return TypedMessage{.type_url = std::string(kMetricsV1), .value = EncodeMetrics(stats)};
}

}  // namespace gantry::stats
