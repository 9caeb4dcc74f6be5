// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gantry::vmm::vsock {

/// `CONNECT 4294967295\n`.
inline constexpr size_t kMaxGreeting = 19;

/// The port of `CONNECT PORT`, without its end of line; nothing where it is anything else.
std::optional<uint32_t> ParseGreeting(std::string_view line);

/// Whether more bytes could still make it one.
bool MayBecomeGreeting(std::string_view begin);

}  // namespace gantry::vmm::vsock
