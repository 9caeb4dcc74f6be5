// SPDX-License-Identifier: Apache-2.0
#include "core/config/collector_endpoint.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace gantry::config {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kUnix = "unix://";
/// sockaddr_un's.
constexpr size_t kLongestSocket = 107;
/// RFC 1035, section 2.3.4.
constexpr size_t kLongestHost = 253;

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

bool IsOneOf(char c, std::string_view more) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         more.contains(c);
}

bool IsHost(std::string_view text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
  const std::string_view inside = brackets ? text.substr(1, text.size() - 2) : text;
  const std::string_view more = brackets ? ":." : "-.";
  return !inside.empty() && inside.size() <= kLongestHost &&
         std::ranges::all_of(inside, [more](char c) { return IsOneOf(c, more); });
}

std::unexpected<Error> Unexpected() {
  return Fail(Code::kInvalidArgument,
              "expected http://HOST:PORT, where a collector takes OTLP over gRPC (4317 as a rule), "
              "or unix:///PATH, of at most {} bytes",
              kLongestSocket);
}

}  // namespace

Result<std::string> CollectorTarget(std::string_view endpoint) {
  if (endpoint.starts_with(kHttps)) {
    return Fail(Code::kInvalidArgument,
                "there is no TLS here: name a collector on this node, with http:// or unix://, "
                "and have it pass spans on");
  }
  if (endpoint.starts_with(kUnix)) {
    const std::string_view path = endpoint.substr(kUnix.size());
    const bool good = path.starts_with('/') && path.size() <= kLongestSocket;
    return good ? Result<std::string>("unix:" + std::string(path)) : Unexpected();
  }
  if (!endpoint.starts_with(kHttp)) {
    return Unexpected();
  }
  std::string_view address = endpoint.substr(kHttp.size());
  if (address.ends_with('/')) {
    address.remove_suffix(1);
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || !IsHost(address.substr(0, colon)) ||
      !IsPort(address.substr(colon + 1))) {
    return Unexpected();
  }
  return "dns:" + std::string(address);
}

}  // namespace gantry::config
