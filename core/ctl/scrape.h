// SPDX-License-Identifier: Apache-2.0
//
// One page of figures, as Prometheus would take it.
#pragma once

#include <chrono>
#include <string>

#include <gantry/error.h>

namespace gantry::ctl {

/// What is served at `address`, as `metrics.address` of the configuration says it. Errors:
/// kInvalidArgument: that is no address; kDeadlineExceeded; kUnavailable: nobody listens, or it is
/// no page. Blocks: up to `limit` for each part of the answer.
Result<std::string> ScrapeMetrics(const std::string& address,
                                  std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace gantry::ctl
