// SPDX-License-Identifier: Apache-2.0
//
// ttrpc for programs without a loop. After a write that did not go through whole the connection
// is closed, as the server would take the next request for the rest of that one. Answers to
// calls that were given up are skipped by their stream number.
#include "core/rpc/blocking_client.h"

#include <sys/epoll.h>

#include <array>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/poll.h"
#include "core/os/splice.h"

namespace gantry::rpc {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits for one of `events`.
Status WaitUntil(int fd, uint32_t events, Clock::time_point deadline) {
  const auto left = std::max(deadline - Clock::now(), Clock::duration::zero());
  GANTRY_TRY(const uint32_t ready, os::Poll(fd, events, left));
  if (ready == 0) {
    return Fail(Code::kDeadlineExceeded, "no answer in time");
  }
  return {};
}

Clock::time_point After(std::chrono::nanoseconds timeout) {
  constexpr auto kLongest = std::chrono::hours(24 * 365);
  return Clock::now() + std::min<std::chrono::nanoseconds>(timeout, kLongest);
}

}  // namespace

Result<BlockingClient> BlockingClient::Connect(const std::string& path) {
  GANTRY_TRY(UniqueFd socket, ConnectUnix(path));
  return BlockingClient(std::move(socket));
}

Status BlockingClient::WriteAll(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    GANTRY_TRY(const Transfer put, SendWithFds(socket_.get(), bytes, {}));
    bytes.remove_prefix(put.bytes);
    if (put.would_block) {
      GANTRY_CHECK_OK(WaitUntil(socket_.get(), EPOLLOUT, deadline));
    }
  }
  return {};
}

Status BlockingClient::ReadSome(Deadline deadline) {
  // Ask before reading, so that a socket in blocking mode will do too.
  GANTRY_CHECK_OK(WaitUntil(socket_.get(), EPOLLIN, deadline));
  std::array<char, size_t{16} << 10> buffer{};
  GANTRY_TRY(const Transfer got, os::ReadSome(socket_.get(), buffer));
  if (got.end) {
    return Fail(Code::kUnavailable, "connection closed by the server");
  }
  frames_.Feed(std::string_view(buffer.data(), got.bytes));
  return {};
}

Result<uint32_t> BlockingClient::Send(const std::string& service, const std::string& method,
                                      std::string payload, std::chrono::nanoseconds timeout,
                                      Metadata metadata) {
  if (!socket_) {
    return Fail(Code::kUnavailable, "call '{}/{}': connection is closed", service, method);
  }
  const Request request{service, method, std::move(payload), timeout, std::move(metadata)};
  GANTRY_TRY(const std::string frame,
             EncodeFrame(next_stream_, FrameType::kRequest, 0, EncodeRequest(request)));
  const auto limit = timeout.count() > 0 ? timeout : std::chrono::nanoseconds::max();
  if (Status status = WriteAll(frame, After(limit)); !status) {
    // A part of the frame may be on its way: nothing can follow it.
    socket_.reset();
    return std::unexpected(std::move(status).error());
  }
  return std::exchange(next_stream_, next_stream_ + 2);
}

Result<std::string> BlockingClient::Receive(uint32_t stream, std::chrono::nanoseconds timeout) {
  const Deadline deadline = After(timeout);
  while (true) {
    while (const std::optional<Frame> frame = frames_.Next()) {
      if (frame->header.stream != stream ||
          frame->header.type != static_cast<uint8_t>(FrameType::kResponse)) {
        continue;
      }
      if (frame->oversized) {
        return Fail(Code::kResourceExhausted, "answer of {} bytes is too large",
                    frame->header.length);
      }
      return DecodeResponse(frame->data);
    }
    GANTRY_CHECK_OK(ReadSome(deadline));
  }
}

Result<std::string> BlockingClient::Call(const std::string& service, const std::string& method,
                                         std::string payload, std::chrono::nanoseconds timeout,
                                         Metadata metadata) {
  GANTRY_TRY(const uint32_t stream,
             Send(service, method, std::move(payload), timeout, std::move(metadata)));
  return Receive(stream, timeout.count() > 0 ? timeout : std::chrono::nanoseconds::max());
}

}  // namespace gantry::rpc
