// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/metrics/moment.h"

namespace gantry::metrics::test {

/// With something of each.
Moment FullMoment();

}  // namespace gantry::metrics::test
