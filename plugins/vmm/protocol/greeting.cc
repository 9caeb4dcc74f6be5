// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/greeting.h"

#include <algorithm>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

Result<uint32_t> ChooseVersion(const Hello& hello) {
  if (hello.first_version == 0 || hello.first_version > hello.last_version) {
    return Fail(
        Code::kFailedPrecondition,
        "greet the guest agent: it says that it speaks versions {} to {}, which is no range",
        hello.first_version, hello.last_version);
  }
  const uint32_t chosen = std::min(hello.last_version, kLastVersion);
  if (chosen < std::max(hello.first_version, kFirstVersion)) {
    const bool older = hello.last_version < kFirstVersion;
    return Fail(Code::kFailedPrecondition,
                "greet the guest agent: it speaks versions {} to {}, and this gantry {} to {}: the "
                "guest image (option 'initrd') is {} than gantry; install the one of this release",
                hello.first_version, hello.last_version, kFirstVersion, kLastVersion,
                older ? "older" : "newer");
  }
  return chosen;
}

}  // namespace gantry::vmm::protocol
