// SPDX-License-Identifier: Apache-2.0
//
// Messages to rtnetlink, as `RouteSocket::Change` takes them: a header of their kind, then
// attributes, each of which begins at a multiple of four.
// Source: rtnetlink(7), Linux, include/uapi/linux/rtnetlink.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::net {

/// A structure of the kernel's as its bytes.
template <class Structure>
std::string BytesOf(const Structure& structure) {
  return {reinterpret_cast<const char*>(&structure), sizeof(structure)};
}

/// A message with that header and no attribute.
template <class Header>
std::string MessageOf(const Header& header) {
  static_assert(sizeof(Header) % 4 == 0, "attributes begin at the next multiple of four");
  return BytesOf(header);
}

/// Adds an attribute, also to the value of another one, which then has this inside. A value is
/// shorter than 64 KiB. Thread: any. Blocks: never.
void AddAttribute(std::string& message, uint16_t type, std::string_view value);
void AddNumber(std::string& message, uint16_t type, uint32_t number);
/// With a zero behind it, as the kernel has words.
void AddWord(std::string& message, uint16_t type, std::string_view word);

}  // namespace gantry::net
