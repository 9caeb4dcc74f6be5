// SPDX-License-Identifier: Apache-2.0
//
// A collector of OpenTelemetry's, as the exporter sees it.
#pragma once

#include <string>

#include <gantry/error.h>

#include "core/async/co.h"

namespace gantry::door {

/// Thread: loop.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;

  /// Sends an ExportTraceServiceRequest and gives the ExportTraceServiceResponse; both as bytes.
  /// One at a time. Ends within a limit of its own. Errors: what the collector answers, or
  /// kUnavailable, kDeadlineExceeded.
  virtual async::Task<Result<std::string>> Export(std::string request) = 0;
};

}  // namespace gantry::door
