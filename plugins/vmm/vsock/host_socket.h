// SPDX-License-Identifier: Apache-2.0
//
// The host's side of streams, as Firecracker and Cloud Hypervisor have it ("hybrid vsock"): who
// the guest dials listens on a UNIX socket NAME_PORT; who dials the guest connects to NAME, writes
// `CONNECT PORT\n` and reads `OK NUMBER\n`, NUMBER being the port that the guest sees.
// Source: Firecracker 1.17, docs/vsock.md.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

/// What became of a step that does not wait.
enum class Step : uint8_t {
  kDone,
  /// Not now. The loop hears of it when it may be tried again; of a dial it does not.
  kLater,
  /// It never will be.
  kOver,
};

/// Connects to the socket of `port`. kLater: its queue is full, and the kernel does not say when
/// it is not. Errors are kOver: nobody listens. Blocks: never.
Step Dial(const std::string& name, uint32_t port, UniqueFd& socket);

/// Reads as much of `CONNECT PORT\n` as has come, and nothing behind it: what follows is the
/// guest's. Words are taken in capitals and not. kOver: it is none, or the host has left.
Step ReadGreeting(int socket, uint32_t& port);

/// Says which port the guest sees. False: the host has left.
bool AnswerGreeting(int socket, uint32_t port);

/// How many bytes moved, and whether there may be more. `bytes` is 0 unless it is kDone.
struct Moved {
  Step step = Step::kDone;
  size_t bytes = 0;
};

/// Straight from the guest's memory, and into it. A read of nothing is kOver: the host ends.
Moved SendPieces(int socket, std::span<const iovec> pieces);
Moved ReceivePieces(int socket, std::span<iovec> pieces);

}  // namespace gantry::vmm::vsock
