// SPDX-License-Identifier: Apache-2.0
//
// Times containerd's calls by the backend of the sandbox that they are for. That is the one which
// stands when the answer is there, since a Create makes it, else the one that stood when the call
// came, since a Delete may end it.
#pragma once

#include <string>
#include <utility>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/metrics/figures.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

/// Thread: loop.
class CallMeter {
 public:
  /// All outlive it.
  CallMeter(const async::Loop& loop, const Sandboxes& sandboxes, metrics::Figures& figures)
      : loop_(loop), sandboxes_(sandboxes), figures_(figures) {}

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
  std::string BackendAt(const std::string& address) const {
    const SandboxEntryPtr entry = sandboxes_.Find(address);
    return entry ? entry->backend_name : std::string();
  }

  const async::Loop& loop_;
  const Sandboxes& sandboxes_;
  metrics::Figures& figures_;
};

}  // namespace gantry::task
