// SPDX-License-Identifier: Apache-2.0
#include <linux/rtnetlink.h>

#include <gantry/toolkit/net/message.h>

namespace gantry::net {

void AddAttribute(std::string& message, uint16_t type, std::string_view value) {
  rtattr attribute{};
  attribute.rta_len = static_cast<uint16_t>(sizeof(attribute) + value.size());
  attribute.rta_type = type;
  message += BytesOf(attribute);
  message += value;
  message.resize((message.size() + 3) & ~size_t{3});
}

void AddNumber(std::string& message, uint16_t type, uint32_t number) {
  AddAttribute(message, type, BytesOf(number));
}

void AddWord(std::string& message, uint16_t type, std::string_view word) {
  std::string value(word);
  value += '\0';
  AddAttribute(message, type, value);
}

}  // namespace gantry::net
