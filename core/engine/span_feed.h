// SPDX-License-Identifier: Apache-2.0
//
// Spans on their way out: gantry-grpc asks for them, and waits where there are none. Whom it cannot
// give them to any more keeps nobody waiting here: they make room for newer ones.
#pragma once

#include <cstdint>
#include <map>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/rpc/method_table.h"
#include "core/trace/spans.h"
#include "proto/gantry/spans.pb.h"

namespace gantry::engine {

/// Thread: loop.
class SpanFeed {
 public:
  /// Both outlive it.
  SpanFeed(async::Loop& loop, trace::Spans& spans);
  SpanFeed(const SpanFeed&) = delete;
  SpanFeed& operator=(const SpanFeed&) = delete;
  ~SpanFeed();

  /// Puts the method into `table`, which it outlives. Errors: kAlreadyExists.
  Status Register(rpc::MethodTable& table);

  /// `call`: until it is abandoned, and then it gets none.
  async::Task<Result<v1::TakeSpansResponse>> Take(const rpc::CallContext& call,
                                                  v1::TakeSpansRequest request);

 private:
  void WakeAll();

  async::Loop& loop_;
  trace::Spans& spans_;
  uint64_t next_wait_ = 1;
  /// Of those that wait for the next span.
  std::map<uint64_t, async::OneShot<void>> waits_;
};

}  // namespace gantry::engine
