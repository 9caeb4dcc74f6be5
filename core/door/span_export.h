// SPDX-License-Identifier: Apache-2.0
//
// The export of spans as gantry-grpc has it: from the engine that runs to a collector over gRPC.
#pragma once

#include <string>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/door/engine_client.h"
#include "core/door/otlp_collector.h"
#include "core/door/span_exporter.h"

namespace gantry::door {

/// Thread: loop. It begins when it is made, and is never taken down: what is under way goes on
/// until the program ends.
class SpanExport {
 public:
  /// `loop` outlives it. `target`: the collector, as OtlpCollector takes it. `version`: gantry's.
  SpanExport(async::Loop& loop, const std::string& run_dir, const std::string& target,
             std::string version);
  SpanExport(const SpanExport&) = delete;
  SpanExport& operator=(const SpanExport&) = delete;
  ~SpanExport() = default;

 private:
  async::Task<Result<v1::TakeSpansResponse>> Take(v1::TakeSpansRequest request);

  EngineClient engine_;
  OtlpCollector collector_;
  SpanExporter exporter_;
};

}  // namespace gantry::door
