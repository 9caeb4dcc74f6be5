// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/front_door.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace gantry::keeper {
namespace {

constexpr size_t kReadBytes = 16384;
/// So many reads in one turn, so that one client does not starve the others.
constexpr int kReadsPerTurn = 16;

Error Refusal(Code code, std::string_view message) {
  return Error{code, 0, std::string(message), {}};
}

}  // namespace

FrontDoor::FrontDoor(async::Loop& loop, Limits limits, std::function<void()> on_parked,
                     std::function<void()> on_closed)
    : loop_(loop),
      limits_(limits),
      on_parked_(std::move(on_parked)),
      on_closed_(std::move(on_closed)),
      buffer_(kReadBytes) {}

FrontDoor::~FrontDoor() {
  on_closed_ = nullptr;
  while (!listeners_.empty()) {
    Close(std::string(listeners_.begin()->first));
  }
  while (!connections_.empty()) {
    const auto hold = connections_.begin()->second;
    CloseConnection(*hold);
  }
  loop_.Cancel(accept_timer_);
  loop_.Cancel(expiry_timer_);
  loop_.Cancel(trial_timer_);
}

// --- Reading -------------------------------------------------------------------

void FrontDoor::OnReady(Connection& connection, uint32_t events) {
  if (connection.streaming == Streaming::kParked) {
    WatchParked(connection, events);
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    Flush(connection);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    for (int i = 0; i < kReadsPerTurn && ReadOnce(connection); ++i) {
    }
  }
  if (!connection.closed) {
    Rearm(connection);
  }
}

bool FrontDoor::ReadOnce(Connection& connection) {
  if (connection.closed || connection.out_bytes > limits_.unread_bytes ||
      connection.streaming == Streaming::kParked) {
    return false;
  }
  // Not a byte of what comes after the opening of a stream.
  const bool exactly = connection.streaming != Streaming::kNo;
  const size_t most = exactly ? std::min(buffer_.size(), connection.in.wanted()) : buffer_.size();
  const ssize_t got = recv(connection.fd.get(), buffer_.data(), most, MSG_DONTWAIT);
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      CloseConnection(connection);
    }
    return false;
  }
  connection.spoke = true;
  connection.in.Feed({buffer_.data(), static_cast<size_t>(got)},
                     [&](Frame frame) { OnFrame(connection, std::move(frame)); });
  CountHeld(connection);
  return true;
}

void FrontDoor::CountHeld(Connection& connection) {
  if (connection.closed) {
    return;
  }
  AddBytes(connection, connection.in.held());
  DropBytes(connection, std::exchange(connection.held, connection.in.held()));
  if (connection.held > 0 &&
      (request_bytes_ > limits_.request_bytes ||
       connection.place->use.request_bytes > limits_.request_bytes_per_place)) {
    connection.in.SkipCurrent();
    DropBytes(connection, std::exchange(connection.held, 0));
  }
}

void FrontDoor::AddBytes(const Connection& connection, size_t bytes) {
  request_bytes_ += bytes;
  connection.place->use.request_bytes += bytes;
}

void FrontDoor::DropBytes(const Connection& connection, size_t bytes) {
  request_bytes_ -= bytes;
  connection.place->use.request_bytes -= bytes;
}

void FrontDoor::OnFrame(Connection& connection, Frame frame) {
  // Its bytes are no longer held as a part; as a request they are counted anew.
  DropBytes(connection, std::exchange(connection.held, 0));
  if (connection.streaming == Streaming::kOpening && !connection.closed) {
    OnStreamFrame(connection, frame);
    return;
  }
  const bool first = connection.streaming == Streaming::kUnknown;
  connection.streaming = Streaming::kNo;
  // Unknown types are to be ignored; data frames belong to streams, which we refuse.
  if (connection.closed || frame.type != kFrameRequest) {
    return;
  }
  if (first && (frame.flags & kFlagRemoteOpen) != 0 && OpensStream(frame.payload)) {
    if (const Status opened = OpenStream(connection, frame); !opened) {
      Refuse(connection, frame.stream, opened.error());
    }
    return;
  }
  Status fine = CheckStream(connection, frame);
  if (fine) {
    fine = CheckRoom(connection, frame);
  }
  if (!fine) {
    Refuse(connection, frame.stream, fine.error());
    return;
  }
  if (IsLeftOut(connection, frame)) {
    return;
  }
  AcceptRequest(connection, std::move(frame));
}

Status FrontDoor::CheckStream(Connection& connection, const Frame& frame) {
  if (frame.stream % 2 == 0) {
    return std::unexpected(
        Refusal(Code::kInvalidArgument, "StreamID must be odd for client initiated streams"));
  }
  if (frame.stream <= connection.last_stream) {
    return std::unexpected(
        Refusal(Code::kInvalidArgument, "StreamID cannot be re-used and must increment"));
  }
  connection.last_stream = frame.stream;
  if ((frame.flags & kFlagRemoteOpen) != 0) {
    return std::unexpected(
        Refusal(Code::kUnimplemented, "open a stream: only unary calls: not implemented"));
  }
  return {};
}

Status FrontDoor::CheckRoom(const Connection& connection, const Frame& frame) const {
  if (frame.length > kMaxPayload) {
    return Fail(Code::kResourceExhausted, "take a request: {} bytes are more than {}", frame.length,
                kMaxPayload);
  }
  const size_t cost = frame.length + kRequestOverhead;
  if (connection.place->use.request_bytes + cost > limits_.request_bytes_per_place) {
    return Fail(Code::kResourceExhausted,
                "take a request: those of this sandbox that wait for their answer have {} bytes",
                connection.place->use.request_bytes);
  }
  if (frame.skipped || request_bytes_ + cost > limits_.request_bytes ||
      connection.waiting_bytes + cost > limits_.request_bytes_per_connection ||
      connection.waiting.size() >= limits_.requests_per_connection) {
    return Fail(Code::kResourceExhausted, "take a request: too many wait for their answer");
  }
  return {};
}

// --- Requests ------------------------------------------------------------------

void FrontDoor::AcceptRequest(Connection& connection, Frame frame) {
  const auto timeout = RequestTimeout(frame.payload);
  const size_t cost = frame.payload.size() + kRequestOverhead;
  Waiting& waiting = connection.waiting[frame.stream];
  waiting.stream = frame.stream;
  waiting.payload = std::move(frame.payload);
  waiting.order = next_order_++;
  const auto now = loop_.Now();
  const TimePoint deadline = timeout.count() > 0 && timeout < std::chrono::hours(24 * 365)
                                 ? now + timeout
                                 : TimePoint::max();
  waiting.deadline_ns = deadline.time_since_epoch().count();
  connection.waiting_bytes += cost;
  AddBytes(connection, cost);
  ++requests_waiting_;
  ++counters_.requests;
  if (!connection.place->left_out.empty()) {
    return;
  }
  if (engine_ != nullptr) {
    Give(connection, frame.stream, waiting);
    return;
  }
  ArmExpiry(waiting.deadline());
  on_parked_();
}

void FrontDoor::Give(Connection& connection, uint32_t stream, Waiting& waiting) {
  link::Request request;
  request.connection = connection.id;
  request.stream = stream;
  request.address = connection.place->address();
  request.ns = connection.place->ns;
  request.grpc_address = connection.place->grpc_address;
  request.payload = waiting.payload;
  request.replay = waiting.given;
  counters_.replayed += waiting.given ? 1 : 0;
  waiting.given = true;
  waiting.with_engine = true;
  waiting.given_at = next_given_++;
  connection.engine_knows = true;
  IgnoreError(engine_->Send(request), "with the engine gone the next one gets it");
}

void FrontDoor::Finish(Connection& connection, uint32_t stream) {
  const auto found = connection.waiting.find(stream);
  const size_t cost = found->second.payload.size() + kRequestOverhead;
  connection.waiting_bytes -= cost;
  DropBytes(connection, cost);
  --requests_waiting_;
  connection.waiting.erase(found);
  if (trial_ == std::pair(connection.id, stream)) {
    loop_.Cancel(trial_timer_);
    trial_timer_ = loop_.After(std::chrono::milliseconds(0), [this] { NextTrial(); });
  }
}

void FrontDoor::Refuse(Connection& connection, uint32_t stream, const Error& error) {
  ++counters_.refused;
  Write(connection, stream, ErrorResponse(error.code, error.message));
}

void FrontDoor::Answer(const link::Response& response) {
  const auto found = connections_.find(response.connection);
  if (found == connections_.end() || !found->second->waiting.contains(response.stream)) {
    return;
  }
  const auto connection = found->second;
  Finish(*connection, response.stream);
  Write(*connection, response.stream, response.payload);
  if (!connection->closed) {
    Rearm(*connection);
  }
}

void FrontDoor::EngineDown() {
  engine_ = nullptr;
  trials_.clear();
  trial_ = {};
  loop_.Cancel(trial_timer_);
  for (const auto& [id, connection] : connections_) {
    for (const auto& [stream, waiting] : connection->waiting) {
      ArmExpiry(waiting.deadline());
    }
  }
}

void FrontDoor::ArmExpiry(TimePoint deadline) {
  if (deadline >= expiry_) {
    return;
  }
  loop_.Cancel(expiry_timer_);
  expiry_ = deadline;
  expiry_timer_ = loop_.After(deadline - loop_.Now(), [this] { Expire(); });
}

void FrontDoor::Expire() {
  expiry_ = TimePoint::max();
  if (engine_ != nullptr) {
    return;
  }
  const auto now = loop_.Now();
  std::vector<std::pair<std::shared_ptr<Connection>, uint32_t>> late;
  for (const auto& [id, connection] : connections_) {
    for (const auto& [stream, waiting] : connection->waiting) {
      if (waiting.deadline() <= now) {
        late.emplace_back(connection, stream);
      } else {
        ArmExpiry(waiting.deadline());
      }
    }
  }
  for (const auto& [connection, stream] : late) {
    if (!connection->closed) {
      Finish(*connection, stream);
      Refuse(*connection, stream,
             Refusal(Code::kDeadlineExceeded, "wait for the engine: context deadline exceeded"));
    }
    if (!connection->closed) {
      Rearm(*connection);
    }
  }
}

// --- Writing -------------------------------------------------------------------

void FrontDoor::Write(Connection& connection, uint32_t stream, std::string_view response) {
  std::string frame;
  if (response.size() > kMaxPayload ||
      connection.place->use.unread_bytes + response.size() > limits_.unread_bytes_max) {
    frame = ResponseFrame(
        stream, ErrorResponse(Code::kResourceExhausted, "answer: larger than what is allowed"));
  } else {
    frame = ResponseFrame(stream, response);
  }
  connection.out_bytes += frame.size();
  connection.place->use.unread_bytes += frame.size();
  connection.out.push_back(std::move(frame));
  if (connection.out.size() == 1) {
    Flush(connection);
  }
}

void FrontDoor::Flush(Connection& connection) {
  while (!connection.out.empty() && !connection.closed) {
    const std::string& frame = connection.out.front();
    const ssize_t sent = send(connection.fd.get(), frame.data() + connection.out_sent,
                              frame.size() - connection.out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        CloseConnection(connection);
      }
      return;
    }
    connection.out_sent += static_cast<size_t>(sent);
    connection.out_bytes -= static_cast<size_t>(sent);
    connection.place->use.unread_bytes -= static_cast<size_t>(sent);
    if (connection.out_sent == frame.size()) {
      connection.out.pop_front();
      connection.out_sent = 0;
    }
  }
}

void FrontDoor::Rearm(Connection& connection) {
  if (connection.streaming == Streaming::kParked) {
    loop_.Rearm(connection.watch, EPOLLRDHUP);
    return;
  }
  const bool read = connection.out_bytes <= limits_.unread_bytes;
  const bool write = !connection.out.empty();
  loop_.Rearm(connection.watch, (read ? EPOLLIN : 0U) | (write ? EPOLLOUT : 0U));
}

void FrontDoor::CloseConnection(Connection& connection) {
  if (std::exchange(connection.closed, true)) {
    return;
  }
  while (!connection.waiting.empty()) {
    Finish(connection, connection.waiting.begin()->first);
  }
  DropBytes(connection, std::exchange(connection.held, 0));
  const std::shared_ptr<const Place> place = connection.place;
  Unpark(connection);
  --place->use.connections;
  place->use.unread_bytes -= std::exchange(connection.out_bytes, 0);
  if (engine_ != nullptr && connection.engine_knows) {
    IgnoreError(engine_->Send(link::ConnectionClosed{connection.id}),
                "then there is no one to tell");
  }
  loop_.Unwatch(connection.watch);
  connection.fd.reset();
  connections_.erase(connection.id);
  ResumeAccepting();
  if (const auto listener = listeners_.find(place->path); listener != listeners_.end()) {
    loop_.Rearm(listener->second.watch, EPOLLIN);
  }
  if (on_closed_) {
    on_closed_();
  }
}

}  // namespace gantry::keeper
