// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/control_socket.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <vector>

#include <gantry/toolkit/descriptors/connect_unix.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/backoff.h>

namespace gantry::vmm {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr Backoff::Terms kUntilItListens{
    .no_event = "a socket's file tells that it is bound, not that somebody listens",
    .first = std::chrono::milliseconds(1),
    .longest = std::chrono::milliseconds(20)};

bool IsGone(const Error& error) {
  return error.sys_errno == ENOENT || error.sys_errno == ECONNREFUSED;
}

Error Gone(const std::string& vmm, std::string_view how) {
  return {.code = Code::kUnavailable, .message = Format("{} {}", vmm, how), .detail = {}};
}

/// A call of the socket failed: the VMM has gone, or this process cannot.
Error OfSocket(const std::string& vmm, Error error) {
  const int number = error.sys_errno;
  if (number == EPIPE || number == ECONNRESET || number == ENOTCONN) {
    return Gone(vmm, "left before it had answered: it has ended, or closed its control socket");
  }
  return std::move(error).Within("speak to " + vmm);
}

}  // namespace

Result<ControlSocket> ControlSocket::Open(const std::string& vmm, const std::string& path,
                                          Deadline deadline) {
  Result<UniqueFd> fd = ConnectUnixBy(path, deadline);
  if (fd) {
    return ControlSocket(vmm, std::move(*fd));
  }
  Error error = std::move(fd).error();
  if (IsGone(error)) {
    error.code = Code::kUnavailable;
    error.message =
        Format("nobody listens at {}'s socket '{}': {}", vmm, path, ErrnoName(error.sys_errno));
  }
  return std::unexpected(std::move(error));
}

Result<ControlSocket> ControlSocket::Await(const std::string& vmm, const std::string& path,
                                           Deadline deadline, const HostProcess* process) {
  Backoff backoff(kUntilItListens);
  while (true) {
    Result<ControlSocket> opened = Open(vmm, path, deadline);
    if (opened || !IsGone(opened.error())) {
      return opened;
    }
    if (process != nullptr) {
      if (const auto ended = process->Ended()) {
        return Fail(Code::kUnavailable, "{} ended with {} before it listened at '{}'", vmm,
                    ended->code(), path);
      }
    }
    if (!backoff.Sleep(deadline)) {
      return Fail(Code::kDeadlineExceeded, "{} does not listen at '{}' in time", vmm, path);
    }
  }
}

Status ControlSocket::AwaitReady(int16_t events, Deadline deadline) const {
  while (true) {
    pollfd one{fd_.get(), events, 0};
    const int ready = poll(&one, 1, PollTimeout(deadline));
    if (ready > 0) {
      return {};
    }
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) {
      return Fail(Code::kDeadlineExceeded, "{} {}", vmm_,
                  events == POLLIN ? "has not answered in time" : "does not take the request");
    }
    if (ready < 0 && errno != EINTR) {
      return FailErrno(errno, "wait for {}", vmm_);
    }
  }
}

Status ControlSocket::Send(std::string_view text, std::span<const int> fds, Deadline deadline) {
  while (!text.empty()) {
    Result<Transfer> sent = SendWithFds(fd_.get(), text, fds);
    if (!sent) {
      return std::unexpected(OfSocket(vmm_, std::move(sent).error()));
    }
    if (sent->bytes == 0) {
      GANTRY_CHECK_OK(AwaitReady(POLLOUT, deadline));
      continue;
    }
    text.remove_prefix(sent->bytes);
    fds = {};
  }
  return {};
}

Result<bool> ControlSocket::ReceiveNow(std::string& text) {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  // Descriptors that anybody sends are closed.
  std::vector<UniqueFd> fds;
  Result<Transfer> got = RecvWithFds(fd_.get(), buffer, fds);
  if (!got) {
    return std::unexpected(OfSocket(vmm_, std::move(got).error()));
  }
  if (got->end) {
    return std::unexpected(
        Gone(vmm_, "left before it had answered: it has ended, or closed its control socket"));
  }
  text.append(buffer.data(), got->bytes);
  return got->bytes > 0;
}

Status ControlSocket::Receive(std::string& text, Deadline deadline) {
  while (true) {
    // Who never stops talking has no more time than who says nothing.
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(Code::kDeadlineExceeded, "{} has not answered in time", vmm_);
    }
    GANTRY_TRY(const bool some, ReceiveNow(text));
    if (some) {
      return {};
    }
    GANTRY_CHECK_OK(AwaitReady(POLLIN, deadline));
  }
}

}  // namespace gantry::vmm
