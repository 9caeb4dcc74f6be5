// SPDX-License-Identifier: Apache-2.0
//
// Runs requests against the method table and sends the answers back. It knows
// nothing of sockets: requests come in as (connection, stream, bytes), answers
// go out through a callback.
//
// A handler goes on when its caller's time is up or its connection has closed;
// its answer is then dropped. Handlers in that state still count against the
// limits, so that a client that keeps giving up cannot fill the engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/async/account.h"
#include "core/async/loop.h"
#include "core/rpc/method_table.h"

namespace gantry::rpc {

/// One unary request as it came over a connection.
struct IncomingRequest {
  /// Chosen by the caller; never reused while an answer may be outstanding.
  uint64_t connection = 0;
  uint32_t stream = 0;
  /// The data of the Request frame.
  std::string bytes;
  /// The namespace of the socket, empty where the socket has none.
  std::string ns;
  std::string address;
  bool replay = false;
  /// How long ago it arrived (a replay): taken off its timeout.
  std::chrono::nanoseconds age{0};
  /// On whose behalf it is; null: on nobody's.
  async::AccountPtr account{};
};

/// Takes the data of a Response frame, at most `kMaxFrameBytes`. Called on the
/// loop thread, at most once per request, from within `Dispatch` too.
using SendResponse =
    std::function<void(uint64_t connection, uint32_t stream, std::string response)>;

struct DispatcherLimits {
  /// Handlers running for one connection, most of them parked Waits.
  size_t per_connection = 16384;
  /// On behalf of one account, over all connections; and the bytes that it may hold.
  size_t per_account = 8192;
  size_t bytes_per_account = size_t{64} << 20;
  size_t total = 131072;
};

struct DispatcherCounters {
  /// Requests taken, those that were refused included.
  uint64_t requests = 0;
  /// Answers sent with an error.
  uint64_t errors = 0;
  /// Answered with DEADLINE_EXCEEDED while the handler went on.
  uint64_t timeouts = 0;
  /// Answers that nobody waited for any more.
  uint64_t dropped = 0;
  /// Refused by the limits.
  uint64_t refused = 0;
  /// Handlers running now.
  size_t running = 0;
};

/// How often a method was answered with a code.
struct AnswerCount {
  /// Both empty: of requests that named no method of the table, or were none.
  std::string service;
  std::string method;
  Code code = Code::kOk;
  uint64_t count = 0;
};

/// Thread: loop.
class Dispatcher {
 public:
  /// `table` and `loop` must outlive every handler.
  Dispatcher(async::Loop& loop, const MethodTable& table, SendResponse send,
             DispatcherLimits limits = {});
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  /// Handlers that still run are abandoned: they end on their own and nothing
  /// is sent any more.
  ~Dispatcher();

  /// Starts the request's handler, or answers at once where that cannot be:
  /// kInvalidArgument (malformed; metadata names another namespace than the
  /// socket), kUnimplemented, kResourceExhausted, kDeadlineExceeded.
  /// A stream that still waits for its answer is kInvalidArgument too.
  void Dispatch(IncomingRequest request);
  /// The connection is gone: its answers are dropped, its handlers told.
  void ConnectionClosed(uint64_t connection);

  /// Somebody waits for the answer of a call that has something to do: one that is not
  /// parked (Abandonment::Park). Costs a look at each unanswered call.
  bool IsBusy() const;

  DispatcherCounters counters() const;
  /// One for each pair that has come up, at most one for each method and code.
  std::vector<AnswerCount> Answers() const;

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace gantry::rpc
