// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/network/guest_ports.h"

#include <string>
#include <utility>

namespace gantry::vmm {

Result<UniqueFd> GuestPorts::Connect(uint16_t port) const {
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  GANTRY_TRY(const std::string token, streams->Expect());
  if (Status asked = ask({.port = port, .token = token}, deadline); !asked) {
    streams->Forget(token);
    return std::unexpected(std::move(asked).error());
  }
  return streams->Take(token, deadline);
}

}  // namespace gantry::vmm
