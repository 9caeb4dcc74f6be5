// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>

#include <gantry/protowire.h>

namespace gantry {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

void ProtoWriter::Raw(uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void ProtoWriter::Varint(uint32_t field, uint64_t value) {
  Raw((static_cast<uint64_t>(field) << 3) | kVarint);
  Raw(value);
}

void ProtoWriter::Double(uint32_t field, double value) {
  Raw((static_cast<uint64_t>(field) << 3) | kFixed64);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) {
    out_.push_back(static_cast<char>(bits >> shift));
  }
}

void ProtoWriter::Bytes(uint32_t field, std::string_view value) {
  Raw((static_cast<uint64_t>(field) << 3) | kLengthDelimited);
  Raw(value.size());
  out_.append(value);
}

void ProtoWriter::Text(uint32_t field, std::string_view value) {
  if (!value.empty()) {
    Bytes(field, value);
  }
}

std::optional<uint64_t> ProtoReader::ReadVarint() {
  uint64_t value = 0;
  for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

bool ProtoReader::Malformed() {
  ok_ = false;
  rest_ = {};
  return false;
}

bool ProtoReader::Take(size_t count) {
  if (count > rest_.size()) {
    return Malformed();
  }
  bytes_ = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

bool ProtoReader::Next() {
  if (rest_.empty()) {
    return false;
  }
  bytes_ = {};
  number_ = 0;
  const std::optional<uint64_t> tag = ReadVarint();
  if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1fffffff) {
    return Malformed();
  }
  field_ = static_cast<uint32_t>(*tag >> 3);
  const auto type = static_cast<uint32_t>(*tag & 7);
  is_bytes_ = type == kLengthDelimited;
  if (type == kFixed64 || type == kFixed32) {
    if (!Take(type == kFixed64 ? 8 : 4)) {
      return false;
    }
    number_ = LittleEndian(std::exchange(bytes_, {}));
    return true;
  }
  if (type != kVarint && type != kLengthDelimited) {
    return Malformed();
  }
  const std::optional<uint64_t> value = ReadVarint();
  if (!value) {
    return Malformed();
  }
  if (is_bytes_) {
    return Take(*value > rest_.size() ? rest_.size() + 1 : static_cast<size_t>(*value));
  }
  number_ = *value;
  return true;
}

}  // namespace gantry
