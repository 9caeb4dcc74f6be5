// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include <gantry/format.h>

namespace gantry::vmm {
namespace {

/// In one turn, after which others have theirs.
constexpr int kReadsInTurn = 16;
constexpr size_t kReadBytes = size_t{64} << 10;
/// Of events that are none.
constexpr uint32_t kMaxBadEvents = 1000;

int64_t RealTime() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

AgentClient::AgentClient(std::string name, Greeted greeted, AgentEvents events)
    : name_(std::move(name)),
      socket_(std::move(greeted.socket)),
      hello_(std::move(greeted.hello)),
      events_(std::move(events)),
      begin_ns_(RealTime()),
      frames_(protocol::kMaxFromGuest) {}

Error AgentClient::Within(protocol::Kind kind, Error error) const {
  return std::move(error).Within(
      Format("ask the guest agent of '{}' for {}", name_, protocol::NameOf(kind)));
}

Result<uint64_t> AgentClient::Begin(Waiting waiting) {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    return std::unexpected(Within(waiting.kind, *broken_));
  }
  if (calls_.size() >= kMaxCalls) {
    return std::unexpected(
        Within(waiting.kind,
               {Code::kResourceExhausted, 0, Format("{} calls wait already", kMaxCalls), {}}));
  }
  calls_[++last_call_] = std::move(waiting);
  return last_call_;
}

Status AgentClient::Send(uint64_t call, protocol::Kind kind, std::string body, Deadline deadline) {
  const std::string payload = EncodeProto(protocol::Envelope{
      .call = call, .kind = static_cast<uint32_t>(kind), .body = std::move(body), .failure = {}});
  if (payload.size() > protocol::kMaxFromHost) {
    return Fail(Code::kInvalidArgument, "it has {} bytes, at most {}", payload.size(),
                protocol::kMaxFromHost);
  }
  return SendAll(protocol::Framed(payload), deadline);
}

Status AgentClient::Post(protocol::Kind kind, std::string body,
                         std::function<void(Result<std::string>)> answered) {
  constexpr std::chrono::seconds kReads{5};
  GANTRY_TRY(const uint64_t call,
             Begin({.kind = kind, .answer = {}, .answered = std::move(answered)}));
  Status sent = Send(call, kind, std::move(body), std::chrono::steady_clock::now() + kReads);
  if (!sent) {
    const std::lock_guard lock(mutex_);
    // Where the connection broke meanwhile it has been told.
    return calls_.erase(call) == 0 ? Status()
                                   : std::unexpected(Within(kind, std::move(sent).error()));
  }
  return {};
}

Result<std::string> AgentClient::Ask(protocol::Kind kind, std::string body, Deadline deadline) {
  GANTRY_TRY(const uint64_t call, Begin({.kind = kind, .answer = {}, .answered = {}}));
  Status sent = Send(call, kind, std::move(body), deadline);
  std::unique_lock lock(mutex_);
  if (!sent) {
    calls_.erase(call);
    return std::unexpected(Within(kind, std::move(sent).error()));
  }
  Waiting& waiting = calls_[call];
  const bool came = answered_.wait_until(
      lock, deadline, [&] { return waiting.answer.has_value() || broken_.has_value(); });
  std::optional<Result<std::string>> answer = std::move(waiting.answer);
  calls_.erase(call);
  if (answer) {
    return *answer ? std::move(*answer)
                   : Result<std::string>(std::unexpected(Within(kind, std::move(*answer).error())));
  }
  const Error late{Code::kDeadlineExceeded, 0, "it has not answered in time", {}};
  return std::unexpected(Within(kind, came ? broken_.value_or(late) : late));
}

// Who cannot send a frame whole leaves a connection that nobody can use any more.
Status AgentClient::SendAll(std::string_view bytes, Deadline deadline) {
  // By a duration: the thread sanitizer's library has no other way.
  const std::unique_lock lock(sending_, deadline - std::chrono::steady_clock::now());
  if (!lock.owns_lock()) {
    return Fail(Code::kDeadlineExceeded, "it does not read what others ask it");
  }
  const size_t whole = bytes.size();
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    const int error = sent < 0 ? errno : EAGAIN;
    if (error == EAGAIN) {
      pollfd one{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      if (::poll(&one, 1, PollTimeout(deadline)) == 0) {
        Status late = Fail(Code::kDeadlineExceeded, "it does not read what it is asked");
        if (bytes.size() < whole) {
          Break({Code::kUnavailable, 0, "it has stopped reading in the middle of a call", {}});
        }
        return late;
      }
      continue;
    }
    if (error != EINTR) {
      Error gone = ErrnoError(error, "send");
      gone.code = Code::kUnavailable;
      Break(gone);
      return std::unexpected(std::move(gone));
    }
  }
  return {};
}

bool AgentClient::OnReadable() {
  std::string part(kReadBytes, '\0');
  for (int i = 0; i < kReadsInTurn; ++i) {
    const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    }
    if (got <= 0) {
      Break({Code::kUnavailable, got < 0 ? errno : 0, "its connection is closed", {}});
      return false;
    }
    frames_.Feed({part.data(), static_cast<size_t>(got)});
    if (Status taken = TakeFrames(); !taken) {
      Break({Code::kUnavailable,
             0,
             "it said what no agent says: " + std::move(taken).error().message,
             {}});
      return false;
    }
  }
  return true;
}

Status AgentClient::TakeFrames() {
  for (;;) {
    GANTRY_TRY(const std::optional<std::string> frame, frames_.Next());
    if (!frame) {
      return {};
    }
    GANTRY_CHECK_OK(Take(*frame));
  }
}

Status AgentClient::Take(const std::string& frame) {
  GANTRY_TRY(const protocol::Envelope envelope, DecodeProto<protocol::Envelope>(frame));
  if (envelope.call != 0) {
    return TakeAnswer(envelope);
  }
  if (!Deliver(envelope, events_, begin_ns_, lines_) && ++bad_events_ > kMaxBadEvents) {
    return Fail(Code::kResourceExhausted, "more than {} events that are none", kMaxBadEvents);
  }
  return {};
}

Status AgentClient::TakeAnswer(const protocol::Envelope& answer) {
  std::unique_lock lock(mutex_);
  if (answer.call > last_call_) {
    return Fail(Code::kInvalidArgument, "an answer to call {}, which nobody has made", answer.call);
  }
  const auto found = calls_.find(answer.call);
  if (found == calls_.end()) {
    return {};  // Its deadline has passed.
  }
  Waiting& waiting = found->second;
  if (waiting.answer || static_cast<uint32_t>(waiting.kind) != answer.kind) {
    return Fail(Code::kInvalidArgument, "a second answer to call {}, or one to another question",
                answer.call);
  }
  if (answer.failure) {
    waiting.answer = std::unexpected(protocol::ToError(*answer.failure));
  } else {
    waiting.answer = answer.body;
  }
  if (waiting.answered) {
    const Waiting posted = std::move(waiting);
    calls_.erase(found);
    lock.unlock();
    posted.answered(*posted.answer);
    return {};
  }
  answered_.notify_all();
  return {};
}

void AgentClient::Break(const Error& why) {
  std::vector<Waiting> posted;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) {
      return;
    }
    broken_ = why;
    std::erase_if(calls_, [&](auto& call) {
      const bool is_posted = call.second.answered != nullptr;
      if (is_posted) {
        posted.push_back(std::move(call.second));
      }
      return is_posted;
    });
    answered_.notify_all();
  }
  for (const Waiting& one : posted) {
    one.answered(std::unexpected(Within(one.kind, why)));
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
  if (events_.gone) {
    events_.gone(why);
  }
}

void AgentClient::Close() { Break({Code::kUnavailable, 0, "its connection was closed here", {}}); }

}  // namespace gantry::vmm
