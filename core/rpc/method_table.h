// SPDX-License-Identifier: Apache-2.0
//
// The one table of methods that all transports serve: full names and handlers.
// Handlers take and give encoded messages here; `core/rpc/typed.h` wraps those
// that work with generated protobuf types.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/rpc/ttrpc.h"

namespace gantry::rpc {

/// Tells a handler that nobody waits for its answer any more: the connection
/// has closed, or the caller's time has run out. A call that would wait for
/// long (Wait) should end then; others just go on. Thread: loop.
class Abandonment {
 public:
  bool happened() const { return happened_; }

  /// Calls `then` when it happens; at once if it has. At most one callback is
  /// kept, the last one set; an empty one takes it away.
  void Notify(std::move_only_function<void()> then);
  /// The same, by a call that now waits for something that may never come, and does
  /// nothing meanwhile: it can as well wait in another engine.
  void Park(std::move_only_function<void()> then);

  bool parked() const { return parked_; }

  /// Again: nothing.
  void Happen();

 private:
  bool happened_ = false;
  bool parked_ = false;
  std::move_only_function<void()> then_;
};

/// What a handler knows about a call besides its message.
struct CallContext {
  std::string service;
  std::string method;
  /// What the caller gives it, from the time it arrived here; 0: no limit.
  std::chrono::nanoseconds timeout{0};
  Metadata metadata;
  /// The namespace: that of the socket it came on, else of the metadata, else empty.
  std::string ns;
  /// The socket that it came on; empty for transports without.
  std::string address;
  /// On whose behalf it is. Null for those of nobody (the operator's).
  async::AccountPtr account;
  /// An earlier engine may have begun, or even finished, this call.
  bool replay = false;
  /// Never null in a handler.
  std::shared_ptr<Abandonment> abandonment = std::make_shared<Abandonment>();
  /// Answers the caller now, as if his time had run out; what the handler gives
  /// later is dropped. Again: nothing. May be null outside of a dispatcher.
  std::function<void(const Error&)> answer_early;
};

struct Call : CallContext {
  std::string payload;
};

/// Runs one call. It is kept by the table, so a lambda coroutine may capture
/// what outlives the table. Exceptions out of it are answered with kInternal.
/// Thread: loop.
using Handler = std::function<async::Task<Result<std::string>>(Call)>;

/// Thread: loop; filled before the first call and then left alone.
class MethodTable {
 public:
  /// `service` is a full name ("containerd.task.v3.Task").
  /// Errors: kAlreadyExists for a method that is there; kInvalidArgument for an
  /// empty name or handler.
  Status Add(std::string service, std::string method, Handler handler);

  /// Never null; valid as long as the table.
  /// Errors: kUnimplemented, "service X" or "method Y": containerd's fallback
  /// from task API 3 to 2 needs this code.
  /// Source: containerd/ttrpc 1.2.7, services.go.
  Result<const Handler*> Find(std::string_view service, std::string_view method) const;

  /// The service and the method of a handler of this table; empty for null.
  std::pair<std::string, std::string> NameOf(const Handler* handler) const;

  /// `service/method` of all, sorted.
  std::vector<std::string> Names() const;

 private:
  using Methods = std::map<std::string, Handler, std::less<>>;

  std::map<std::string, Methods, std::less<>> services_;
};

}  // namespace gantry::rpc
