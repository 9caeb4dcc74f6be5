// SPDX-License-Identifier: Apache-2.0
//
// ttrpc on a loop: many calls on one connection, each with an odd stream number that is used once.
// A call that has timed out is forgotten, and its late answer is dropped by its number. When the
// connection ends every call fails with UNAVAILABLE, and `OnClose` is told after that, in the
// loop's next turn, so that it may destroy the client.
#include "core/rpc/client.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/os/splice.h"

namespace gantry::rpc {
namespace {

/// A client's streams are odd; the last one that fits.
constexpr uint32_t kLastStream = 0xffffffff;
constexpr size_t kReadBytes = size_t{16} << 10;
constexpr Backoff::Terms kQueueFull{.no_event = "unix(7) has none for the full queue of a listener",
                                    .first = std::chrono::milliseconds(1),
                                    .longest = std::chrono::milliseconds(10)};

}  // namespace

struct Client::State : std::enable_shared_from_this<Client::State> {
  using Answer = async::OneShot<Result<std::string>>;

  struct Pending {
    Answer answer;
    async::TimerId timer;
  };

  State(async::Loop& the_loop, UniqueFd the_socket)
      : loop(the_loop), socket(std::move(the_socket)) {}

  void Begin();
  void OnReady(uint32_t ready);
  Status Read();
  Status Flush();
  void TakeFrame(Frame frame);
  Result<Answer> Send(const Request& request);
  void Resolve(uint32_t stream, Result<std::string> result);
  void Close(const Error& why);

  async::Loop& loop;
  UniqueFd socket;
  async::WatchId watch;
  FrameSplitter frames;
  /// Written up to `sent`.
  std::string unsent;
  size_t sent = 0;
  std::unordered_map<uint32_t, Pending> pending;
  uint32_t next_stream = 1;
  bool closed = false;
  std::move_only_function<void()> on_close;
};

void Client::State::Begin() {
  if (Status status = SetNonblocking(socket.get(), true); !status) {
    Close(status.error());
    return;
  }
  watch = loop.Watch(socket.get(), EPOLLIN, [weak = weak_from_this()](uint32_t ready) {
    if (const std::shared_ptr<State> self = weak.lock()) {
      self->OnReady(ready);
    }
  });
}

void Client::State::OnReady(uint32_t ready) {
  Status status = (ready & EPOLLOUT) != 0 ? Flush() : Status();
  if (status && (ready & ~uint32_t{EPOLLOUT}) != 0) {
    status = Read();
  }
  if (!status) {
    Close(status.error());
  }
}

Status Client::State::Read() {
  // Written by the kernel, and read as far as it says.
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  GANTRY_TRY(const Transfer got, os::ReadSome(socket.get(), buffer));
  if (got.end) {
    return Fail(Code::kUnavailable, "connection closed by the server");
  }
  frames.Feed(std::string_view(buffer.data(), got.bytes));
  while (std::optional<Frame> frame = frames.Next()) {
    TakeFrame(std::move(*frame));
  }
  return {};
}

void Client::State::TakeFrame(Frame frame) {
  if (frame.header.type != static_cast<uint8_t>(FrameType::kResponse)) {
    return;
  }
  if (frame.oversized) {
    Resolve(frame.header.stream,
            Fail(Code::kResourceExhausted, "answer of {} bytes is too large", frame.header.length));
    return;
  }
  Resolve(frame.header.stream, DecodeResponse(frame.data));
}

Status Client::State::Flush() {
  while (sent < unsent.size()) {
    const std::string_view rest = std::string_view(unsent).substr(sent);
    GANTRY_TRY(const Transfer put, SendWithFds(socket.get(), rest, {}));
    if (put.would_block) {
      loop.Rearm(watch, EPOLLIN | EPOLLOUT);
      return {};
    }
    sent += put.bytes;
  }
  std::string().swap(unsent);
  sent = 0;
  loop.Rearm(watch, EPOLLIN);
  return {};
}

Result<Client::State::Answer> Client::State::Send(const Request& request) {
  if (closed || next_stream == kLastStream) {
    return Fail(Code::kUnavailable, "call '{}/{}': connection is closed", request.service,
                request.method);
  }
  GANTRY_TRY(std::string frame,
             EncodeFrame(next_stream, FrameType::kRequest, 0, EncodeRequest(request)));
  if (unsent.size() - sent + frame.size() > kMaxUnsentBytes) {
    return Fail(Code::kResourceExhausted, "call '{}/{}': the server does not read its requests",
                request.service, request.method);
  }
  const uint32_t stream = std::exchange(next_stream, next_stream + 2);
  Pending& entry = pending[stream];
  Answer answer = entry.answer;
  if (request.timeout.count() > 0) {
    const auto late = [this, stream] {
      Resolve(stream, Fail(Code::kDeadlineExceeded, "no answer in time"));
    };
    entry.timer = loop.After(request.timeout, late);
  }
  unsent.erase(0, std::exchange(sent, 0));
  const bool was_empty = unsent.empty();
  unsent.append(frame);
  if (Status status = was_empty ? Flush() : Status(); !status) {
    Close(status.error());
  }
  return answer;
}

void Client::State::Resolve(uint32_t stream, Result<std::string> result) {
  auto found = pending.extract(stream);
  if (!found) {
    return;
  }
  loop.Cancel(found.mapped().timer);
  found.mapped().answer.Set(std::move(result));
}

void Client::State::Close(const Error& why) {
  if (std::exchange(closed, true)) {
    return;
  }
  const std::shared_ptr<State> self = shared_from_this();
  loop.Unwatch(watch);
  socket.reset();
  for (auto& [stream, entry] : std::exchange(pending, {})) {
    loop.Cancel(entry.timer);
    entry.answer.Set(Fail(Code::kUnavailable, "{}", why.message));
  }
  if (on_close) {
    loop.Post([self] {
      if (self->on_close) {
        std::exchange(self->on_close, nullptr)();
      }
    });
  }
}

namespace {

Result<UniqueFd> TryConnect(const std::string& path, bool& queue_full) {
  Result<UniqueFd> socket = ConnectUnix(path);
  queue_full = !socket && socket.error().sys_errno == EAGAIN;
  return socket;
}

}  // namespace

async::Task<Result<std::unique_ptr<Client>>> Client::Connect(async::Loop& loop, std::string path,
                                                             std::chrono::nanoseconds timeout) {
  const auto deadline = loop.Now() + timeout;
  Backoff backoff(kQueueFull);
  while (true) {
    bool queue_full = false;
    Result<UniqueFd> socket = TryConnect(path, queue_full);
    if (socket) {
      co_return std::make_unique<Client>(loop, std::move(*socket));
    }
    if (!queue_full) {
      co_return std::unexpected(std::move(socket).error());
    }
    if (loop.Now() >= deadline) {
      co_return Fail(Code::kDeadlineExceeded, "connect to '{}': the server accepts no connection",
                     path);
    }
    co_await async::Sleep(loop, backoff.Next());
  }
}

Client::Client(async::Loop& loop, UniqueFd socket)
    : state_(std::make_shared<State>(loop, std::move(socket))) {
  state_->Begin();
}

Client::~Client() {
  state_->on_close = nullptr;
  state_->Close(Error{Code::kUnavailable, 0, "connection closed", {}});
}

/// Holds the state, not the client, which may go while a call waits.
async::Task<Result<std::string>> Client::RunCall(std::shared_ptr<State> state, Request request) {
  Result<State::Answer> answer = state->Send(request);
  if (!answer) {
    co_return std::unexpected(std::move(answer).error());
  }
  std::string().swap(request.payload);
  co_return std::move(co_await answer->Wait());
}

async::Task<Result<std::string>> Client::Call(std::string service, std::string method,
                                              std::string payload, std::chrono::nanoseconds timeout,
                                              Metadata metadata) {
  return RunCall(state_, Request{std::move(service), std::move(method), std::move(payload), timeout,
                                 std::move(metadata)});
}

bool Client::closed() const { return state_->closed; }

void Client::OnClose(std::move_only_function<void()> then) {
  state_->on_close = std::move(then);
  if (state_->closed) {
    state_->loop.Post([self = state_] {
      if (self->on_close) {
        std::exchange(self->on_close, nullptr)();
      }
    });
  }
}

}  // namespace gantry::rpc
