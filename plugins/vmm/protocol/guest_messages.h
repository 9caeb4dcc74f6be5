// SPDX-License-Identifier: Apache-2.0
//
// Requests about a guest that runs: its mounts, what was added to it, its ports, its end. See
// messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

/// A `GuestMount::type`: no mount, but the device file of a disk.
inline constexpr const char* kDeviceFile = "device";

struct GuestMount {
  std::string type{};
  std::string source{};
  std::string serial{};
  std::string target{};
  std::vector<std::string> options{};

  void Each(this auto& self, auto&& field) {
    field(1, self.type);
    field(2, self.source);
    field(3, self.serial);
    field(4, self.target);
    field(5, self.options);
  }
};

struct Attach {
  static constexpr Kind kKind = Kind::kAttach;
  using Answer = Nothing;

  std::vector<GuestMount> mounts{};
  uint32_t wait_ms = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.mounts);
    field(2, self.wait_ms);
  }
};

struct Detach {
  static constexpr Kind kKind = Kind::kDetach;
  using Answer = Nothing;

  std::vector<std::string> targets{};

  void Each(this auto& self, auto&& field) { field(1, self.targets); }
};

struct OnlineAnswer {
  uint32_t cpus = 0;
  uint64_t memory_bytes = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.cpus);
    field(2, self.memory_bytes);
  }
};

struct Online {
  static constexpr Kind kKind = Kind::kOnline;
  using Answer = OnlineAnswer;

  uint32_t cpus = 0;
  uint32_t wait_ms = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.cpus);
    field(2, self.wait_ms);
  }
};

struct Forward {
  static constexpr Kind kKind = Kind::kForward;
  using Answer = Nothing;

  uint32_t port = 0;
  std::string token{};

  void Each(this auto& self, auto&& field) {
    field(1, self.port);
    field(2, self.token);
  }
};

struct Shutdown {
  static constexpr Kind kKind = Kind::kShutdown;
  using Answer = Nothing;

  void Each(this auto&, auto&&) {}
};

}  // namespace gantry::vmm::protocol
