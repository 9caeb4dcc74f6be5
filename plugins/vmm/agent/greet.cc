// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/greet.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm {
namespace {

/// One that says nothing holds up the next for no longer.
constexpr std::chrono::seconds kHelloTime{2};
constexpr size_t kMaxHello = 4096;
constexpr size_t kMaxText = 128;

Status AwaitReadable(int fd, Deadline deadline) {
  for (;;) {
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&one, 1, PollTimeout(deadline));
    if (ready > 0) {
      return {};
    }
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded, "nothing has come in time");
    }
    if (errno != EINTR) {
      return FailErrno(errno, "wait for the guest");
    }
  }
}

Result<std::string> ReadHello(int socket, protocol::FrameReader& frames, Deadline deadline) {
  char part[kMaxHello];
  for (;;) {
    GANTRY_TRY(auto frame, frames.Next());
    if (frame) {
      return std::move(*frame);
    }
    GANTRY_CHECK_OK(AwaitReadable(socket, deadline));
    const ssize_t got = ::recv(socket, part, sizeof(part), MSG_DONTWAIT);
    if (got == 0) {
      return Fail(Code::kUnavailable, "it was closed before a hello");
    }
    if (got > 0) {
      frames.Feed({part, static_cast<size_t>(got)});
    } else if (errno != EAGAIN && errno != EINTR) {
      return FailErrno(errno, "read a hello");
    }
  }
}

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

Result<Greeted> GreetOn(UniqueFd socket, const std::string& session, Deadline deadline) {
  GANTRY_CHECK_OK(SetNonblocking(socket.get(), true));
  protocol::FrameReader frames(kMaxHello);
  GANTRY_TRY(const std::string frame, ReadHello(socket.get(), frames, deadline));
  Greeted greeted;
  GANTRY_TRY(greeted.hello, ParseHello(frame));
  if (!session.empty() && !SameSecret(session, greeted.hello.session)) {
    return Fail(Code::kPermissionDenied, "it does not know what the guest agent knows");
  }
  const auto version = protocol::ChooseVersion(greeted.hello);
  if (!version) {
    IgnoreError(SendWelcome(socket.get(), {.refusal = version.error().message}),
                "what it lacks is the error that counts");
    return std::unexpected(version.error());
  }
  greeted.version = *version;
  greeted.session = session.empty() ? RandomName(protocol::kTokenBytes) : session;
  GANTRY_CHECK_OK(
      SendWelcome(socket.get(), {.version = greeted.version, .session = greeted.session}));
  greeted.socket = std::move(socket);
  return greeted;
}

Result<Greeted> GreetAgent(const UniqueFd& listener, const std::string& session,
                           Deadline deadline) {
  std::string last;
  for (;;) {
    if (const Status came = AwaitReadable(listener.get(), deadline); !came) {
      return Fail(came.error().code, "wait for the guest agent's hello: {}{}{}",
                  came.error().message, last.empty() ? "" : "; the last that dialled: ", last);
    }
    GANTRY_TRY(std::optional<UniqueFd> accepted, AcceptUnix(listener.get()));
    if (!accepted) {
      continue;
    }
    auto greeted = GreetOn(std::move(*accepted), session,
                           std::min(deadline, std::chrono::steady_clock::now() + kHelloTime));
    if (greeted || greeted.error().code == Code::kFailedPrecondition) {
      return greeted;
    }
    last = greeted.error().message;
  }
}

}  // namespace gantry::vmm
