// SPDX-License-Identifier: Apache-2.0
//
// A connection to a VMM's control socket: bytes with a deadline, descriptors along with them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

/// Errors: kUnavailable: the VMM left; kDeadlineExceeded; the errno's. They name the VMM; what the
/// request was is the caller's to add. Thread: one at a time.
class ControlSocket {
 public:
  /// Owner: takes `fd`, nonblocking.
  ControlSocket(std::string vmm, UniqueFd fd) : vmm_(std::move(vmm)), fd_(std::move(fd)) {}

  /// Errors: kUnavailable where nobody listens. Blocks: up to `deadline`, where too many wait.
  static Result<ControlSocket> Open(const std::string& vmm, const std::string& path,
                                    Deadline deadline);
  /// Waits for somebody to listen, as long as `process`, where it is given, lives.
  static Result<ControlSocket> Await(const std::string& vmm, const std::string& path,
                                     Deadline deadline, const HostProcess* process);

  /// All of `text`, and with its first byte `fds`, which are borrowed.
  Status Send(std::string_view text, std::span<const int> fds, Deadline deadline);
  /// What there is, at least a byte, behind `text`.
  Status Receive(std::string& text, Deadline deadline);
  /// The same without waiting. False: nothing is there yet. Errors: kUnavailable at its end.
  Result<bool> ReceiveNow(std::string& text);

  const UniqueFd& fd() const { return fd_; }

 private:
  Status AwaitReady(int16_t events, Deadline deadline) const;

  std::string vmm_;
  UniqueFd fd_;
};

}  // namespace gantry::vmm
