// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/greet.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/agent/newcomers.h"
#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxHello = 4096;
constexpr size_t kMaxText = 128;

std::string Shown(const std::string& text) {
  std::string out = text.substr(0, kMaxText);
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return out;
}

Result<protocol::Hello> ParseHello(const std::string& frame) {
  GANTRY_TRY(const protocol::Envelope envelope, DecodeProto<protocol::Envelope>(frame));
  if (envelope.call != 0 || envelope.kind != static_cast<uint32_t>(protocol::Kind::kHello)) {
    return Fail(Code::kInvalidArgument, "it begins with something else than a hello");
  }
  GANTRY_TRY(protocol::Hello hello, DecodeProto<protocol::Hello>(envelope.body));
  hello.agent = Shown(hello.agent);
  hello.kernel = Shown(hello.kernel);
  hello.boot_id = Shown(hello.boot_id);
  return hello;
}

/// It is small, and the socket is new: all of it goes in.
Status SendWelcome(int socket, const protocol::Welcome& welcome) {
  const std::string frame = protocol::Framed(
      EncodeProto(protocol::Envelope{.call = 0,
                                     .kind = static_cast<uint32_t>(protocol::Kind::kWelcome),
                                     .body = EncodeProto(welcome),
                                     .failure = std::nullopt}));
  const ssize_t sent = ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(frame.size())) {
    return FailErrno(sent < 0 ? errno : EPIPE, "welcome the guest agent");
  }
  return {};
}

/// In a time that says nothing of where the two differ.
bool SameSecret(std::string_view one, std::string_view other) {
  unsigned char differs = one.size() == other.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    differs |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return differs == 0;
}

}  // namespace

Newcomer::Newcomer(UniqueFd socket) : socket_(std::move(socket)), frames_(kMaxHello) {}

// Of what it says a hello's bytes are read in one turn, and no more.
Result<std::optional<Greeted>> Newcomer::Hear(const std::string& session) {
  std::array<char, kMaxHello> part{};
  const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
  if (got == 0) {
    return Fail(Code::kUnavailable, "it was closed before a hello");
  }
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR
               ? Result<std::optional<Greeted>>(std::optional<Greeted>())
               : FailErrno(errno, "read a hello");
  }
  frames_.Feed({part.data(), static_cast<size_t>(got)});
  GANTRY_TRY(const std::optional<std::string> frame, frames_.Next());
  if (!frame) {
    return std::optional<Greeted>();
  }
  return Welcome(*frame, session);
}

Result<Greeted> Newcomer::Welcome(const std::string& hello, const std::string& session) {
  Greeted greeted;
  GANTRY_TRY(greeted.hello, ParseHello(hello));
  if (!session.empty() && !SameSecret(session, greeted.hello.session)) {
    return Fail(Code::kPermissionDenied, "it does not know what the guest agent knows");
  }
  const auto version = protocol::ChooseVersion(greeted.hello);
  if (!version) {
    IgnoreError(SendWelcome(socket_.get(), {.refusal = version.error().message}),
                "what it lacks is the error that counts");
    return std::unexpected(version.error());
  }
  greeted.version = *version;
  greeted.session = session.empty() ? RandomName(protocol::kTokenBytes) : session;
  GANTRY_CHECK_OK(
      SendWelcome(socket_.get(), {.version = greeted.version, .session = greeted.session}));
  greeted.socket = std::move(socket_);
  return greeted;
}

Result<Greeted> GreetAgent(const UniqueFd& listener, const std::string& session,
                           Deadline deadline) {
  GANTRY_TRY(UniqueFd its, listener.Duplicate());
  GANTRY_TRY(const auto newcomers, Newcomers::On(std::move(its)));
  std::string last;
  for (;;) {
    pollfd one{.fd = newcomers->fd(), .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded,
                  "wait for the guest agent's hello: nothing has come in time{}{}",
                  last.empty() ? "" : "; the last that dialled: ", last);
    }
    auto heard = newcomers->OnReadable(session);
    if (!heard) {
      if (heard.error().code == Code::kFailedPrecondition) {
        return std::unexpected(std::move(heard).error());
      }
      last = heard.error().message;
      continue;
    }
    if (std::optional<Greeted> agent = std::move(*heard)) {
      return *std::move(agent);
    }
  }
}

}  // namespace gantry::vmm
