// SPDX-License-Identifier: Apache-2.0
#include "core/store/checksum.h"

#include <array>

#include <gantry/protowire.h>

namespace gantry::store {
namespace {

constexpr auto kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
    }
    table[i] = crc;
  }
  return table;
}();

// Bytes, so that the field's length is the same whatever the value is.
std::string FieldOf(uint32_t crc) {
  std::string bytes(4, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(crc >> (8 * i));
  }
  ProtoWriter out;
  out.Bytes(kChecksumField, bytes);
  return out.Take();
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

std::string Seal(std::string body) {
  body += FieldOf(Crc32c(body));
  return body;
}

Result<std::string_view> Unseal(std::string_view bytes) {
  const size_t tail = FieldOf(0).size();
  if (bytes.size() < tail) {
    return Fail(Code::kDataLoss, "decode the record: cut off after {} bytes", bytes.size());
  }
  const std::string_view body = bytes.substr(0, bytes.size() - tail);
  if (bytes.substr(body.size()) != FieldOf(Crc32c(body))) {
    return Fail(Code::kDataLoss, "decode the record: cut off or damaged, the checksum is wrong");
  }
  return body;
}

}  // namespace gantry::store
