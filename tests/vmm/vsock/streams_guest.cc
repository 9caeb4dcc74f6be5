// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/vsock/streams_guest.h"

#include <utility>

namespace gantry::vmm {

Result<std::unique_ptr<StreamsGuest>> StreamsGuest::Boot(VsockProgram program, bool later) {
  std::unique_ptr<StreamsGuest> guest(new StreamsGuest(program, later));
  if (Status begun = guest->Begin(later); !begun) {
    Error error = std::move(begun).error();
    error.message += guest->guest_.Words();
    return std::unexpected(std::move(error));
  }
  return guest;
}

Status StreamsGuest::Begin(bool later) {
  VsockDevice& device = guest_.vsock();
  GANTRY_TRY(const UniqueFd ready, device.Listen(1025));
  GANTRY_TRY(reports_, device.Listen(1026));
  GANTRY_CHECK_OK(guest_.Launch());
  if (later) {
    GANTRY_CHECK_OK(guest_.vm().AddVsock(device.Config(), Soon()));
  }
  GANTRY_TRY(const UniqueFd said, AwaitConnection(ready, Soon()));
  GANTRY_TRY(const std::string word, ReadFrom(said.get(), 5));
  return word == "ready" ? Status()
                         : Fail(Code::kInternal, "boot a guest: its first process says '{}'", word);
}

}  // namespace gantry::vmm
