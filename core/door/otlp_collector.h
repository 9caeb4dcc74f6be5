// SPDX-License-Identifier: Apache-2.0
//
// A collector over gRPC: OTLP's TraceService. The connection is gRPC's, which makes it when it is
// first needed, and anew when it has ended. There is no TLS, and no proxy is asked for.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/door/collector.h"

namespace gantry::door {

class OtlpCollector final : public Collector {
 public:
  /// `target`: as gRPC names it, `dns:HOST:PORT` or `unix:/PATH`. `loop` outlives it. `limit`: of
  /// each call.
  OtlpCollector(async::Loop& loop, const std::string& target, std::chrono::milliseconds limit);
  OtlpCollector(const OtlpCollector&) = delete;
  OtlpCollector& operator=(const OtlpCollector&) = delete;
  /// A call under way is cancelled. Blocks: until gRPC has let go of it.
  ~OtlpCollector() override;

  async::Task<Result<std::string>> Export(std::string request) override;

 private:
  struct Call;
  class Channel;

  async::Loop& loop_;
  const std::chrono::milliseconds limit_;
  const std::unique_ptr<Channel> channel_;
  /// The one under way, or the last one.
  std::shared_ptr<Call> call_;
};

}  // namespace gantry::door
