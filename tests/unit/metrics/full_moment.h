// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/metrics/moment.h"

namespace gantry::test {

/// With something of each.
metrics::Moment FullMoment();

}  // namespace gantry::test
