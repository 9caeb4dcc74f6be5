// SPDX-License-Identifier: Apache-2.0
//
// Times containerd's calls by the backend of the sandbox that they are for, and puts them on the
// flight recorder. The backend is that which stands when the answer is there, since a Create makes
// it, else the one that stood when the call came, since a Delete may end it.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/metrics/figures.h"
#include "core/rpc/method_table.h"
#include "core/task/sandboxes.h"
#include "core/trace/recorder.h"
#include "core/trace/span_context.h"

namespace gantry::task {

/// The names in a request of either service.
template <class Request>
trace::Subject NamesOf(const rpc::CallContext& call, const Request& request) {
  if constexpr (requires { request.exec_id(); }) {
    return {call.ns, request.id(), request.exec_id()};
  } else if constexpr (requires { request.sandbox_id(); }) {
    return {call.ns, request.sandbox_id(), {}};
  } else {
    return {call.ns, request.id(), {}};
  }
}

/// Thread: loop.
class CallMeter {
 public:
  /// All outlive it.
  CallMeter(const async::Loop& loop, const Sandboxes& sandboxes, metrics::Figures& figures,
            trace::Recorder& recorder)
      : loop_(loop), sandboxes_(sandboxes), figures_(figures), recorder_(recorder) {}

  /// Its step, or none of what is asked again and again and changes nothing: that would leave no
  /// room to what happens. Who asks with a trace of his own has it in there.
  trace::OpenStep BeginStep(const rpc::CallContext& call, const trace::Subject& subject) const {
    constexpr std::array<std::string_view, 6> kQuestions = {
        "State", "Pids", "Stats", "Connect", "SandboxStatus", "SandboxMetrics"};
    const std::optional<trace::SpanContext> caller = CallerOf(call);
    if (!std::ranges::contains(kQuestions, call.method)) {
      return recorder_.Begin(trace::Kind::kCall, subject, call.method, call.replay,
                             caller ? &*caller : nullptr);
    }
    return caller ? recorder_.BeginUnrecorded(trace::Kind::kCall, subject, call.method, *caller)
                  : trace::OpenStep();
  }

  /// Ends `step` with what `task` gives.
  template <class Response>
  static async::Task<Result<Response>> Traced(async::Task<Result<Response>> task,
                                              trace::OpenStep step) {
    Result<Response> response = co_await std::move(task);
    step.Ended(response);
    co_return response;
  }

  /// `task` serves a call that came on the socket `address`. `key`: but for the backend.
  template <class Response>
  async::Task<Result<Response>> Timed(async::Task<Result<Response>> task, std::string address,
                                      metrics::CallKey key) const {
    const async::TimePoint begin = loop_.Now();
    key.backend = BackendAt(address);
    Result<Response> response = co_await std::move(task);
    if (std::string now = BackendAt(address); !now.empty()) {
      key.backend = std::move(now);
    }
    figures_.Call(std::move(key), loop_.Now() - begin, !response.has_value());
    co_return response;
  }

 private:
  std::optional<trace::SpanContext> CallerOf(const rpc::CallContext& call) const {
    return recorder_.exports()
               ? trace::ParseTraceparent(rpc::FindMetadata(call.metadata, trace::kTraceparentKey),
                                         rpc::FindMetadata(call.metadata, trace::kTracestateKey))
               : std::nullopt;
  }

  std::string BackendAt(const std::string& address) const {
    const SandboxEntryPtr entry = sandboxes_.Find(address);
    return entry ? entry->backend_name : std::string();
  }

  const async::Loop& loop_;
  const Sandboxes& sandboxes_;
  metrics::Figures& figures_;
  trace::Recorder& recorder_;
};

}  // namespace gantry::task
