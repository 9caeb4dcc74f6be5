// SPDX-License-Identifier: Apache-2.0
//
// The two messages that open a control connection, and which rules both sides go by from then on.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

namespace gantry::vmm::protocol {

/// Of the guest, on each new connection.
struct Hello {
  /// Versions that the agent speaks.
  uint32_t first_version = 0;
  uint32_t last_version = 0;
  /// "gantry-agent 0.1.0", and `uname -r`.
  std::string agent{};
  std::string kernel{};
  /// Of the kernel: another one is another boot. Empty before the first `SetUp`.
  std::string boot_id{};
  /// What the host's `Welcome` had; empty: there was none. A container that dials the host's port
  /// does not know it.
  std::string session{};
  int64_t realtime_ns = 0;
  uint64_t since_boot_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.first_version);
    field(2, self.last_version);
    field(3, self.agent);
    field(4, self.kernel);
    field(5, self.boot_id);
    field(6, self.session);
    field(7, self.realtime_ns);
    field(8, self.since_boot_ns);
  }
};

/// Of the host.
struct Welcome {
  /// The one to be spoken; 0: none, and `refusal` says why.
  uint32_t version = 0;
  std::string session{};
  std::string refusal{};

  void Each(this auto& self, auto&& field) {
    field(1, self.version);
    field(2, self.session);
    field(3, self.refusal);
  }
};

/// The highest version that both speak. Errors: kFailedPrecondition: none, naming the agent, both
/// ranges, and which of the two is the older one.
Result<uint32_t> ChooseVersion(const Hello& hello);

}  // namespace gantry::vmm::protocol
