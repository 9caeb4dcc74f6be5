// SPDX-License-Identifier: Apache-2.0
//
// A moment as text.
#pragma once

#include <string>

#include "core/metrics/moment.h"
#include "core/metrics/text.h"

namespace gantry::metrics {

/// Thread: any.
std::string Render(const Moment& moment, TextFormat format);

}  // namespace gantry::metrics
