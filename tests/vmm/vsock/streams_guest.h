// SPDX-License-Identifier: Apache-2.0
//
// A guest with a vsock device that is a program of its own, gantry's or rust-vmm's, and with
// tests/vmm/guests/streams.cc as its first process.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/socket_io.h"

namespace gantry::vmm {

class StreamsGuest {
 public:
  /// Booted, and its first process is there. `later`: it boots without the device and gets it then.
  /// Errors: with the console's last lines.
  static Result<std::unique_ptr<StreamsGuest>> Boot(VsockProgram program, bool later = false);

  /// A blocking socket, connected to a port of the guest.
  Result<UniqueFd> Dial(uint32_t port) { return guest_.vsock().Dial(port); }

  /// Without waiting for the answer.
  UniqueFd BeginToDial(uint32_t port) { return guest_.vsock().BeginToDial(port); }

  /// Where the guest's port 1026 is answered.
  const UniqueFd& reports() const { return reports_; }

  GuestVm& guest() { return guest_; }

 private:
  StreamsGuest(VsockProgram program, bool later)
      : guest_(GuestSettings{.first = FirstProcess::kStreams,
                             .vsock = program,
                             .vsock_later = later,
                             .change = {}}) {}

  Status Begin(bool later);

  GuestVm guest_;
  UniqueFd reports_;
};

}  // namespace gantry::vmm
