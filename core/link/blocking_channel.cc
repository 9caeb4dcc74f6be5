// SPDX-License-Identifier: Apache-2.0
//
// The link for programs without a loop: shim and gantryctl. The socket stays non-blocking, and
// each wait is a poll with the time that is left of one deadline for the whole call.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "core/link/channel.h"

namespace gantry::link {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

Status WaitFor(int socket, short events, Deadline deadline) {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  const auto left = ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd wanted{socket, events, 0};
  const int ready = left.count() < 0 ? 0 : poll(&wanted, 1, static_cast<int>(left.count()));
  if (ready == 0) {
    return Fail(Code::kDeadlineExceeded, "wait for the keeper: no answer in time");
  }
  if (ready < 0 && errno != EINTR) {
    return FailErrno(errno, "wait for the keeper");
  }
  return {};
}

}  // namespace

Status BlockingChannel::Send(Type type, std::string_view body, Deadline deadline) {
  if (body.size() > kMaxBody) {
    return Fail(Code::kResourceExhausted, "write the link: {} bytes", body.size());
  }
  const std::string bytes = EncodeHeader(type, body.size(), 0).append(body);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent =
        send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      GANTRY_CHECK_OK(WaitFor(socket_.get(), POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Fail(Code::kUnavailable, "write the link: {}", ErrnoName(errno));
    }
  }
  return {};
}

Result<Message> BlockingChannel::Receive(Deadline deadline) {
  while (true) {
    GANTRY_TRY(auto message, in_.Next());
    if (message) {
      return std::move(*message);
    }
    GANTRY_TRY(const bool more, in_.ReadFrom(socket_.get()));
    if (!more) {
      GANTRY_CHECK_OK(WaitFor(socket_.get(), POLLIN, deadline));
    }
  }
}

}  // namespace gantry::link
