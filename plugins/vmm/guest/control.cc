// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::vmm::guest {

using protocol::Envelope;
using protocol::Kind;

void Control::Dial() {
  if (socket_) {
    return;
  }
  auto dialled = platform_.Dial(protocol::kControlPort);
  if (!dialled) {
    Break();
    return;
  }
  socket_ = std::move(*dialled);
  ++connection_;
  watch_ = loop_.On(socket_.get(), EPOLLOUT, [this](uint32_t events) { OnSocket(events); });
}

// There is none, or there is one no more: later there is.
void Control::Break() {
  watch_.Reset();
  socket_.reset();
  connected_ = false;
  version_ = 0;
  calls_ = 0;
  unsent_.clear();
  frames_ = protocol::FrameReader(protocol::kMaxFromHost);
  loop_.After(this, pause_, [this] { Dial(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Control::OnSocket(uint32_t events) {
  if (!connected_) {
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
      Break();
      return;
    }
    connected_ = true;
    Greet();
  }
  const uint64_t connection = connection_;
  if (socket_ && (events & EPOLLOUT) != 0) {
    Flush();
  }
  if (socket_ && connection == connection_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    Read();
  }
  Arm();
}

void Control::Greet() {
  protocol::Hello hello = hello_();
  hello.session = session_;
  Send({.call = 0,
        .kind = static_cast<uint32_t>(Kind::kHello),
        .body = EncodeProto(hello),
        .failure = {}});
}

void Control::Arm() {
  if (socket_) {
    watch_.Want((calls_ < kMaxCalls ? uint32_t{EPOLLIN} : 0U) |
                (unsent_.empty() && connected_ ? 0U : uint32_t{EPOLLOUT}));
  }
}

void Control::Read() {
  static std::array<char, size_t{64} << 10> part;
  const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    Break();
    return;
  }
  frames_.Feed({part.data(), static_cast<size_t>(got)});
  if (!TakeFrames() && socket_) {
    Break();
  }
}

// An answer may find that the connection is gone, and what was left of it with it.
Status Control::TakeFrames() {
  while (socket_) {
    GANTRY_TRY(const std::optional<std::string> frame, frames_.Next());
    if (!frame) {
      break;
    }
    GANTRY_CHECK_OK(Take(*frame));
  }
  return {};
}

Status Control::Take(const std::string& frame) {
  GANTRY_TRY(const Envelope envelope, DecodeProto<Envelope>(frame));
  if (version_ == 0) {
    return TakeWelcome(envelope);
  }
  if (envelope.call == 0) {
    return {};  // A word of a newer host that wants no answer.
  }
  ++calls_;
  const auto kind = static_cast<Kind>(envelope.kind);
  on_call_(kind, envelope.body,
           [this, connection = connection_, call = envelope.call, kind](Result<std::string> body) {
             if (connection != connection_ || !socket_) {
               return;
             }
             --calls_;
             Envelope answer{
                 .call = call, .kind = static_cast<uint32_t>(kind), .body = {}, .failure = {}};
             if (body && body->size() + 64 > protocol::kMaxFromGuest) {
               body = Fail(Code::kResourceExhausted, "its answer has {} bytes", body->size());
             }
             if (body) {
               answer.body = std::move(*body);
             } else {
               answer.failure = protocol::ToFailure(body.error());
             }
             Send(answer);
           });
  return {};
}

Status Control::TakeWelcome(const Envelope& envelope) {
  if (envelope.kind != static_cast<uint32_t>(Kind::kWelcome)) {
    return Fail(Code::kInvalidArgument, "the host begins with kind {}", envelope.kind);
  }
  GANTRY_TRY(const protocol::Welcome welcome, DecodeProto<protocol::Welcome>(envelope.body));
  if (welcome.version < protocol::kFirstVersion || welcome.version > protocol::kLastVersion) {
    pause_ = kLongestPause;
    return Fail(Code::kFailedPrecondition, "the host refuses this agent: {}", welcome.refusal);
  }
  version_ = welcome.version;
  session_ = welcome.session;
  pause_ = kFirstPause;
  return {};
}

void Control::Tell(Kind kind, std::string body) {
  if (version_ != 0) {
    Send({.call = 0, .kind = static_cast<uint32_t>(kind), .body = std::move(body), .failure = {}});
  }
}

void Control::Send(const Envelope& envelope) {
  unsent_ += protocol::Framed(EncodeProto(envelope));
  if (unsent_.size() > kMaxUnsent) {
    Break();
    return;
  }
  Flush();
  Arm();
}

void Control::Flush() {
  size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data() + done, unsent_.size() - done,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        break;
      }
      Break();
      return;
    }
    done += static_cast<size_t>(sent);
  }
  if (done == unsent_.size()) {
    std::string().swap(unsent_);
  } else {
    unsent_.erase(0, done);
  }
}

}  // namespace gantry::vmm::guest
