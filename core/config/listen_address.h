// SPDX-License-Identifier: Apache-2.0
//
// Where something is served that this host alone is to see: a UNIX socket, or a port of the
// loopback interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::config {

struct ListenAddress {
  /// Absolute; empty: a port.
  std::string path;
  uint16_t port = 0;
  /// Of [::1], else of 127.0.0.1.
  bool v6 = false;

  bool operator==(const ListenAddress&) const = default;
};

/// What `ParseListenAddress` takes, for messages.
inline constexpr std::string_view kListenAddressForms =
    "the absolute path of a socket, of at most 107 bytes, or 127.0.0.1:PORT or [::1]:PORT";

/// Nothing: it is none of these. A port is 1 to 65535.
std::optional<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace gantry::config
