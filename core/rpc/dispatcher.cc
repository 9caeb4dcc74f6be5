// SPDX-License-Identifier: Apache-2.0
//
// From a request's bytes to its answer's: decode it, find the method, check the namespace, the
// time that is left and the limits, then start the handler. A request has one answer, by whoever
// takes its entry out of `waiting` first: the handler, its time-out, or whoever answers early.
// What the handler gives after that is counted and dropped, since an effect may have been had all
// the same.
#include "core/rpc/dispatcher.h"

#include <algorithm>
#include <exception>
#include <map>
#include <unordered_map>
#include <utility>

#include <gantry/format.h>

#include "core/log/log.h"

namespace gantry::rpc {
namespace {

struct Prepared {
  const Handler* handler = nullptr;
  Call call;
  async::HeldBytes held;
};

/// The namespace that a call is for. The socket knows it; the metadata may only agree.
Status SetNamespace(Call& call, std::string socket_ns) {
  const std::string_view named = FindMetadata(call.metadata, kNamespaceKey);
  if (!socket_ns.empty() && !named.empty() && named != socket_ns) {
    return Fail(Code::kInvalidArgument, "check namespace '{}': the socket is that of '{}'",
                named.substr(0, 80), socket_ns);
  }
  call.ns = socket_ns.empty() ? std::string(named) : std::move(socket_ns);
  return {};
}

Result<Prepared> Prepare(const MethodTable& table, IncomingRequest incoming) {
  GANTRY_TRY(Request request, DecodeRequest(incoming.bytes));
  Prepared prepared;
  GANTRY_TRY(prepared.handler, table.Find(request.service, request.method));
  Call& call = prepared.call;
  call.service = std::move(request.service);
  call.method = std::move(request.method);
  call.metadata = std::move(request.metadata);
  call.payload = std::move(request.payload);
  call.address = std::move(incoming.address);
  call.replay = incoming.replay;
  call.account = incoming.account;
  prepared.held = async::HeldBytes(std::move(incoming.account), call.payload.size());
  GANTRY_CHECK_OK(SetNamespace(call, std::move(incoming.ns)));
  if (request.timeout.count() != 0) {
    call.timeout = request.timeout - incoming.age;
    if (call.timeout.count() <= 0) {
      return Fail(Code::kDeadlineExceeded, "call '{}/{}': its time had passed when it arrived",
                  call.service, call.method);
    }
  }
  return prepared;
}

/// The seam where foreign exceptions end.
async::Task<Result<std::string>> RunHandler(const Handler* handler, Call call) {
  const std::string name = call.service + "/" + call.method;
  std::string what;
  try {
    co_return co_await (*handler)(std::move(call));
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "unknown exception";
  }
  LogError("call '{}': exception: {}", name, what);
  co_return Fail(Code::kInternal, "call '{}': {}", name, what);
}

}  // namespace

struct Dispatcher::State : std::enable_shared_from_this<Dispatcher::State> {
  /// A request that waits for its answer.
  struct Waiting {
    const Handler* handler = nullptr;
    async::TimerId timer;
    std::shared_ptr<Abandonment> abandonment;
  };

  struct Connection {
    uint64_t id = 0;
    std::unordered_map<uint32_t, Waiting> waiting;
    size_t running = 0;
  };

  State(async::Loop& the_loop, const MethodTable& the_table, SendResponse the_send,
        DispatcherLimits the_limits)
      : loop(the_loop), table(the_table), send(std::move(the_send)), limits(the_limits) {}

  void Dispatch(IncomingRequest request);
  Status CheckLimits(const Connection& connection, uint32_t stream);
  Status CheckAccount(const async::Account& account, size_t request_bytes);
  /// `handler`: null where there is none.
  void Respond(uint64_t connection, uint32_t stream, const Handler* handler,
               const Result<std::string>& result);
  static async::Task<void> Serve(std::shared_ptr<State> self,
                                 std::shared_ptr<Connection> connection, uint32_t stream,
                                 Prepared prepared);
  void Finish(Connection& connection, uint32_t stream, const Result<std::string>& result);
  /// The handler goes on; what it gives is dropped.
  void AnswerEarly(Connection& connection, uint32_t stream, const Error& error);
  void Forget(uint64_t id);
  static void Abandon(async::Loop& loop, Connection& connection);

  async::Loop& loop;
  const MethodTable& table;
  /// Empty once the dispatcher has gone.
  SendResponse send;
  DispatcherLimits limits;
  DispatcherCounters counters;
  std::map<std::pair<const Handler*, Code>, uint64_t> answers;
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections;
};

Status Dispatcher::State::CheckLimits(const Connection& connection, uint32_t stream) {
  if (connection.waiting.contains(stream)) {
    return Fail(Code::kInvalidArgument, "take request on stream {}: it is in use", stream);
  }
  if (connection.running >= limits.per_connection || counters.running >= limits.total) {
    ++counters.refused;
    LogWarning("too many calls at a time: {} on this connection, {} in all", connection.running,
               counters.running);
    return Fail(Code::kResourceExhausted,
                "take request: {} calls on this connection are unanswered "
                "(limits.max_waits_per_connection)",
                connection.running);
  }
  return {};
}

Status Dispatcher::State::CheckAccount(const async::Account& account, size_t request_bytes) {
  Status status;
  if (account.calls >= limits.per_account) {
    status = Fail(Code::kResourceExhausted,
                  "take request: {} calls of sandbox '{}' are unanswered "
                  "(limits.max_calls_per_sandbox)",
                  account.calls, account.name);
  } else if (account.bytes + request_bytes > limits.bytes_per_account) {
    status = Fail(Code::kResourceExhausted,
                  "take request of {} bytes: {} are held for sandbox '{}' "
                  "(limits.max_bytes_per_sandbox)",
                  request_bytes, account.bytes, account.name);
  }
  counters.refused += status ? 0 : 1;
  return status;
}

void Dispatcher::State::Dispatch(IncomingRequest incoming) {
  loop.AssertLoopThread();
  const async::Charged charged(incoming.account);
  ++counters.requests;
  const uint64_t id = incoming.connection;
  const uint32_t stream = incoming.stream;
  std::shared_ptr<Connection>& slot = connections[id];
  if (!slot) {
    slot = std::make_shared<Connection>();
    slot->id = id;
  }
  const std::shared_ptr<Connection> connection = slot;
  // A replay was accepted before.
  Status limit = incoming.account && !incoming.replay
                     ? CheckAccount(*incoming.account, incoming.bytes.size())
                     : Status();
  if (limit) {
    limit = CheckLimits(*connection, stream);
  }
  Result<Prepared> prepared = Prepare(table, std::move(incoming));
  const Handler* const handler = prepared ? prepared->handler : nullptr;
  if (prepared && !limit) {
    prepared = std::unexpected(std::move(limit).error());
  }
  if (!prepared) {
    Respond(id, stream, handler, std::unexpected(std::move(prepared).error()));
    Forget(id);
    return;
  }
  Waiting& waiting = connection->waiting[stream];
  waiting.handler = handler;
  waiting.abandonment = prepared->call.abandonment;
  if (prepared->call.timeout.count() > 0) {
    waiting.timer =
        loop.After(prepared->call.timeout, [self = shared_from_this(), connection, stream] {
          self->AnswerEarly(*connection, stream,
                            Error{Code::kDeadlineExceeded, 0, "context deadline exceeded", {}});
        });
  }
  prepared->call.answer_early = [weak = weak_from_this(), connection, stream](const Error& error) {
    if (const auto self = weak.lock()) {
      self->AnswerEarly(*connection, stream, error);
    }
  };
  ++connection->running;
  ++counters.running;
  if (prepared->call.account) {
    ++prepared->call.account->calls;
  }
  async::Start(Serve(shared_from_this(), connection, stream, std::move(*prepared)));
}

async::Task<void> Dispatcher::State::Serve(std::shared_ptr<State> self,
                                           std::shared_ptr<Connection> connection, uint32_t stream,
                                           Prepared prepared) {
  const async::AccountPtr account = prepared.call.account;
  const Result<std::string> result =
      co_await RunHandler(prepared.handler, std::move(prepared.call));
  if (account) {
    --account->calls;
  }
  self->Finish(*connection, stream, result);
}

void Dispatcher::State::Finish(Connection& connection, uint32_t stream,
                               const Result<std::string>& result) {
  --connection.running;
  --counters.running;
  auto waiting = connection.waiting.extract(stream);
  if (!waiting) {
    ++counters.dropped;
  } else {
    loop.Cancel(waiting.mapped().timer);
    Respond(connection.id, stream, waiting.mapped().handler, result);
  }
  Forget(connection.id);
}

void Dispatcher::State::AnswerEarly(Connection& connection, uint32_t stream, const Error& error) {
  auto waiting = connection.waiting.extract(stream);
  if (!waiting) {
    return;
  }
  ++counters.timeouts;
  loop.Cancel(waiting.mapped().timer);
  Respond(connection.id, stream, waiting.mapped().handler, std::unexpected(error));
  waiting.mapped().abandonment->Happen();
}

void Dispatcher::State::Respond(uint64_t connection, uint32_t stream, const Handler* handler,
                                const Result<std::string>& result) {
  counters.errors += result ? 0 : 1;
  Code code = result ? Code::kOk : result.error().code;
  std::string bytes = EncodeResponse(result);
  if (bytes.size() > kMaxFrameBytes) {
    ++counters.errors;
    code = Code::kResourceExhausted;
    bytes = EncodeResponse(Response{
        Code::kResourceExhausted, Format("answer of {} bytes is too large", bytes.size()), {}});
  }
  ++answers[{handler, code}];
  if (send) {
    send(connection, stream, std::move(bytes));
  }
}

/// A connection of which nothing is known but its number needs no entry.
void Dispatcher::State::Forget(uint64_t id) {
  const auto found = connections.find(id);
  if (found != connections.end() && found->second->running == 0 && found->second->waiting.empty()) {
    connections.erase(found);
  }
}

void Dispatcher::State::Abandon(async::Loop& loop, Connection& connection) {
  for (auto& [stream, waiting] : std::exchange(connection.waiting, {})) {
    loop.Cancel(waiting.timer);
    waiting.abandonment->Happen();
  }
}

Dispatcher::Dispatcher(async::Loop& loop, const MethodTable& table, SendResponse send,
                       DispatcherLimits limits)
    : state_(std::make_shared<State>(loop, table, std::move(send), limits)) {}

Dispatcher::~Dispatcher() {
  state_->send = nullptr;
  for (auto& [id, connection] : std::exchange(state_->connections, {})) {
    State::Abandon(state_->loop, *connection);
  }
}

void Dispatcher::Dispatch(IncomingRequest request) { state_->Dispatch(std::move(request)); }

void Dispatcher::ConnectionClosed(uint64_t connection) {
  state_->loop.AssertLoopThread();
  if (auto found = state_->connections.extract(connection)) {
    State::Abandon(state_->loop, *found.mapped());
  }
}

bool Dispatcher::IsBusy() const {
  return std::ranges::any_of(state_->connections, [](const auto& connection) {
    return std::ranges::any_of(connection.second->waiting, [](const auto& waiting) {
      return !waiting.second.abandonment->parked();
    });
  });
}

DispatcherCounters Dispatcher::counters() const { return state_->counters; }

std::vector<AnswerCount> Dispatcher::Answers() const {
  std::vector<AnswerCount> all;
  all.reserve(state_->answers.size());
  for (const auto& [key, count] : state_->answers) {
    auto [service, method] = state_->table.NameOf(key.first);
    all.push_back({std::move(service), std::move(method), key.second, count});
  }
  return all;
}

}  // namespace gantry::rpc
