// SPDX-License-Identifier: Apache-2.0
//
// What tells a record that was cut off or damaged from a whole one: a last
// field that holds a checksum of everything before it. To a protobuf reader it
// is a field like any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::store {

/// The field with the checksum.
inline constexpr uint32_t kChecksumField = 30;

/// CRC-32C. Source: RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

/// `body` with the checksum field behind it.
std::string Seal(std::string body);

/// What `Seal` was given. Errors: kDataLoss.
Result<std::string_view> Unseal(std::string_view bytes);

}  // namespace gantry::store
