// SPDX-License-Identifier: Apache-2.0
//
// Takes spans from the engine, some at a time, and gives them to a collector. Where that cannot be
// reached the ones in hand are tried again and again, and the engine keeps those that come
// meanwhile, as many as it has room for; so nothing here grows, and no call waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/door/collector.h"
#include "core/door/otlp_request.h"
#include "proto/gantry/spans.pb.h"

namespace gantry::door {

/// Thread: loop.
class SpanExporter {
 public:
  /// Asks the engine (proto/gantry/spans.proto).
  using TakeSpans = std::function<async::Task<Result<v1::TakeSpansResponse>>(v1::TakeSpansRequest)>;

  /// All outlive what `Run` gives.
  SpanExporter(async::Loop& loop, TakeSpans take, Collector& collector, Sender sender);
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;
  ~SpanExporter() = default;

  /// Goes on until `Stop`, and then ends with what it waits for just now.
  async::Task<void> Run();

  void Stop() { stopped_ = true; }

 private:
  /// How it stands with somebody: a change is one line of the log.
  enum class Standing : uint8_t { kUnknown, kGood, kAway, kRefuses };

  /// Some that belong together, or none after an error, which has had its pause.
  async::Task<std::vector<v1::Span>> Gather();
  async::Task<Result<v1::TakeSpansResponse>> Take(uint32_t wait_ms, uint32_t most);
  async::Task<void> Send(std::vector<v1::Span> spans);
  /// What the collector has answered for good.
  void Count(const Result<std::string>& answer, uint64_t sent);
  void TellOfEngine(Standing now, const std::string& why);
  void TellOfCollector(Standing now, const std::string& why);

  async::Loop& loop_;
  const TakeSpans take_;
  Collector& collector_;
  const Sender sender_;
  bool stopped_ = false;
  Standing of_engine_ = Standing::kUnknown;
  Standing of_collector_ = Standing::kUnknown;
  /// After an answer of the engine's that was an error.
  Backoff engine_pause_;
  /// Not told to the engine yet.
  uint64_t exported_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace gantry::door
