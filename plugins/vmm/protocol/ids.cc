// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/ids.h"

#include <algorithm>

namespace gantry::vmm::protocol {

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= 128 && id.front() != '.' &&
         std::ranges::all_of(id, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace gantry::vmm::protocol
