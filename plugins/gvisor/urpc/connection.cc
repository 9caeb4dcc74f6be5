// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/descriptors/connect_unix.h>
#include <gantry/toolkit/json/json_end.h>
#include <gantry/toolkit/json/json_member.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::urpc {
namespace {

using Json = nlohmann::json;

constexpr size_t kFirstRead = kMaxPeekedBytes;
constexpr size_t kLaterRead = size_t{64} << 10;
constexpr Backoff::Terms kRestOfAnswer{
    .no_event = "poll(2) of a socket with something unread tells nothing of what comes behind it",
    .first = std::chrono::milliseconds(1),
    .longest = std::chrono::milliseconds(4)};

std::unexpected<Failure> Fails(Cause cause, std::string_view method, std::string text,
                               int sys_errno = 0) {
  Code code = Code::kInternal;
  if (cause == Cause::kGone) {
    code = Code::kUnavailable;
  } else if (cause == Cause::kDeadline) {
    code = Code::kDeadlineExceeded;
  } else if (cause == Cause::kLocal) {
    code = CodeOfErrno(sys_errno);
  }
  if (sys_errno != 0) {
    text += ": " + ErrnoName(sys_errno);
  }
  return std::unexpected(Failure{cause, code, std::string(method), std::move(text), sys_errno});
}

/// Of a socket call that failed: the peer's fault or this process's.
std::unexpected<Failure> FailsErrno(std::string_view method, const char* what, int sys_errno) {
  const bool peer = sys_errno == EPIPE || sys_errno == ECONNRESET || sys_errno == ECONNREFUSED ||
                    sys_errno == ENOENT || sys_errno == ENOTCONN || sys_errno == ESHUTDOWN;
  return Fails(peer ? Cause::kGone : Cause::kLocal, method, what, sys_errno);
}

Outcome<void> Await(int fd, int16_t events, std::string_view method, Deadline deadline) {
  while (true) {
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, PollTimeout(deadline));
    if (ready > 0) {
      return {};
    }
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) {
      return Fails(Cause::kDeadline, method,
                   events == POLLIN ? "the sentry has not answered in time"
                                    : "the sentry does not take the request");
    }
    if (ready < 0 && errno != EINTR) {
      return FailsErrno(method, "wait for the sentry", errno);
    }
  }
}

/// The text of a request, built from its two parts.
std::string TextOf(const Request& request) {
  return Format(R"({{"method":{},"arg":{}}})", Json(request.method).dump(), request.arg);
}

struct ControlBuffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> bytes{};
};

/// Sends what it can of `text`, with `fds`.
ssize_t SendPart(int fd, std::string_view text, std::span<const int> fds) {
  ControlBuffer control;
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Outcome<Answer> AnswerIn(std::string_view method, std::string_view text) {
  // What is handed on is text: of values there may be any number here.
  JsonLimits limits = {.bytes = text.size()};
  limits.values = std::numeric_limits<size_t>::max();
  if (const Status checked = CheckJson(text, "answer", limits); !checked) {
    return Fails(Cause::kProtocol, method,
                 "the sentry's answer is not taken: " + checked.error().message);
  }
  const std::string_view success = JsonMember(text, "success");
  if (success != "true" && success != "false") {
    return Fails(Cause::kProtocol, method, "the sentry's answer does not say whether it did it");
  }
  if (success == "false") {
    const Json err = ReadJson(JsonMember(text, "err"));
    std::string why = err.is_string() ? err.get<std::string>() : std::string();
    return std::unexpected(
        Refusal(method, why.empty() ? "the sentry does not say why" : std::move(why)));
  }
  const std::string_view result = JsonMember(text, "result");
  return Answer{std::string(result.empty() ? "null" : result)};
}

/// What lies in the socket; it stays there. Empty: nothing yet.
Outcome<std::string> PeekText(int fd, std::string_view method) {
  std::string text(kFirstRead, '\0');
  const ssize_t n = recv(fd, text.data(), text.size(), MSG_PEEK | MSG_DONTWAIT);
  if (n == 0) {
    return Fails(Cause::kGone, method, "the sentry left before it had answered");
  }
  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    return FailsErrno(method, "receive from the sentry", errno);
  }
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

}  // namespace

Outcome<Connection> Connection::Open(const std::string& path, Deadline deadline) {
  auto connected = ConnectUnixBy(path, deadline);
  if (connected) {
    return Connection(std::move(*connected));
  }
  if (connected.error().code == Code::kDeadlineExceeded) {
    return Fails(Cause::kDeadline, "connect", "the sentry does not take the connection");
  }
  return FailsErrno("connect", "connect to the sentry", connected.error().sys_errno);
}

Outcome<void> Connection::Send(const Request& request, Deadline deadline) {
  if (request.fds.size() > kMaxFds) {
    return Fails(Cause::kLocal, request.method,
                 Format("{} descriptors, {} are possible", request.fds.size(), kMaxFds), E2BIG);
  }
  const std::string text = TextOf(request);
  std::string_view left = text;
  std::span<const int> fds = request.fds;
  while (!left.empty()) {
    const ssize_t sent = SendPart(fd_.get(), left, fds);
    if (sent >= 0) {
      left.remove_prefix(static_cast<size_t>(sent));
      fds = {};
    } else if (errno == EAGAIN) {
      GANTRY_CHECK_OK(Await(fd_.get(), POLLOUT, request.method, deadline));
    } else if (errno != EINTR) {
      return FailsErrno(request.method, "send to the sentry", errno);
    }
  }
  return {};
}

Outcome<Answer> Connection::Receive(std::string_view method, Deadline deadline, size_t max_answer) {
  std::string text;
  JsonEnd end;
  while (end.state() != JsonEnd::State::kEnded) {
    const size_t before = text.size();
    text.resize(before + (before == 0 ? kFirstRead : kLaterRead));
    const ssize_t n = recv(fd_.get(), text.data() + before, text.size() - before, MSG_DONTWAIT);
    const int error = errno;
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && error == EAGAIN) {
      GANTRY_CHECK_OK(Await(fd_.get(), POLLIN, method, deadline));
      continue;
    }
    if (n < 0 && error == EINTR) {
      continue;
    }
    if (n < 0) {
      return FailsErrno(method, "receive from the sentry", error);
    }
    if (n == 0) {
      return Fails(Cause::kGone, method, "the sentry left before it had answered");
    }
    end.Feed(std::string_view(text).substr(before));
    if (end.state() == JsonEnd::State::kNoObject) {
      return Fails(Cause::kProtocol, method, "the sentry's answer is no JSON object");
    }
    if (text.size() > max_answer) {
      return Fails(Cause::kProtocol, method,
                   Format("the sentry's answer has more than the {} bytes that are taken of it",
                          max_answer));
    }
  }
  return AnswerIn(method, text);
}

Outcome<Answer> Connection::Peek(std::string_view method, Deadline deadline) {
  std::string text;
  Backoff backoff(kRestOfAnswer);
  while (true) {
    GANTRY_CHECK_OK(Await(fd_.get(), POLLIN, method, deadline));
    const size_t before = text.size();
    GANTRY_TRY(text, PeekText(fd_.get(), method));
    JsonEnd end;
    const size_t taken = end.Feed(text);
    if (end.state() == JsonEnd::State::kEnded) {
      return AnswerIn(method, std::string_view(text).substr(0, taken));
    }
    if (end.state() == JsonEnd::State::kNoObject || text.size() >= kFirstRead) {
      return Fails(Cause::kProtocol, method, "the sentry's answer is no short JSON object");
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fails(Cause::kDeadline, method, "the sentry's answer has no end");
    }
    if (text.size() == before) {
      backoff.Sleep(deadline);
    }
  }
}

bool Connection::IsReadable() const {
  pollfd one{fd_.get(), POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace gantry::urpc
