// SPDX-License-Identifier: Apache-2.0
//
// Enters a service's methods into the table, each timed, recorded, and watched for a backend that
// hangs. What a call is about is taken up first, after a restart of the engine.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "core/rpc/typed.h"
#include "core/task/backend_calls.h"
#include "core/task/call_meter.h"
#include "core/task/recovery_order.h"

namespace gantry::task {

/// What a call is about, for its figures. The Sandbox service's requests have no container.
template <class Request>
std::string SubjectOf(const Request& request) {
  if constexpr (requires { request.exec_id(); }) {
    return request.exec_id().empty() ? "init" : "exec";
  } else if constexpr (requires { request.sandbox_id(); }) {
    return "sandbox";
  } else {
    return "init";
  }
}

/// Thread: loop. `self`, `calls`, `order` and `meter` live as long as the table.
template <class Self>
class Registrar {
 public:
  Registrar(rpc::MethodTable& table, std::string service, Self& self, BackendCalls& calls,
            RecoveryOrder& order, const CallMeter& meter)
      : table_(table),
        service_(std::move(service)),
        self_(self),
        calls_(calls),
        order_(order),
        meter_(meter) {}

  /// `limit`: as of `BackendCalls::Watched`. A call without one is in no hurry: containerd
  /// waits for every container, and that is not timed.
  template <class Req, class Resp>
  void Add(const char* method,
           async::Task<Result<Resp>> (Self::*call)(const rpc::CallContext&, Req),
           std::chrono::nanoseconds limit = kNoLimit) {
    if (status_) {
      status_ = rpc::AddTyped<Req, Resp>(
          table_, service_, method,
          [&self = self_, &calls = calls_, &order = order_, &meter = meter_, call, limit](
              const rpc::CallContext& context, Req request) {
            const trace::OpenStep step = meter.BeginStep(context, NamesOf(context, request));
            metrics::CallKey key{{}, context.method, SubjectOf(request)};
            auto task = calls.Watched((self.*call)(context, std::move(request)), context, limit);
            if (limit != kNoLimit) {
              order.Hurry(context.address);
              task = meter.Timed(std::move(task), context.address, std::move(key));
            }
            return step ? CallMeter::Traced(std::move(task), step) : std::move(task);
          });
    }
  }

  /// The first error; methods after it were not added.
  const Status& status() const { return status_; }

 private:
  rpc::MethodTable& table_;
  const std::string service_;
  Self& self_;
  BackendCalls& calls_;
  RecoveryOrder& order_;
  const CallMeter& meter_;
  Status status_;
};

}  // namespace gantry::task
