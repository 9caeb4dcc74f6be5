// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gantry/metrics.h>

#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {

/// What the guest has measured, within the bounds that the core has for it.
ContainerMetrics MetricsOf(const protocol::StatsAnswer& stats);

}  // namespace gantry::vmm
