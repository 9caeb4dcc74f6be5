// SPDX-License-Identifier: Apache-2.0
#include "core/config/listen_address.h"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace gantry::config {
namespace {

/// sockaddr_un's.
constexpr size_t kLongestPath = 107;

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && !text.starts_with('0') ? std::optional(port) : std::nullopt;
}

}  // namespace

std::optional<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  if (text.starts_with('/')) {
    address.path = text;
    return text.size() <= kLongestPath ? std::optional(address) : std::nullopt;
  }
  for (const std::string_view host : {"127.0.0.1:", "[::1]:"}) {
    if (!text.starts_with(host)) {
      continue;
    }
    const std::optional<uint16_t> port = ParsePort(text.substr(host.size()));
    if (!port) {
      return std::nullopt;
    }
    address.port = *port;
    address.v6 = host.starts_with('[');
    return address;
  }
  return std::nullopt;
}

}  // namespace gantry::config
