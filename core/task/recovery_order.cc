// SPDX-License-Identifier: Apache-2.0
#include "core/task/recovery_order.h"

#include <utility>

namespace gantry::task {

void RecoveryOrder::Add(const std::string& address) {
  if (const auto [place, added] = places_.try_emplace(address); added) {
    place->second = order_.insert(order_.end(), address);
  }
}

void RecoveryOrder::Hurry(const std::string& address) {
  if (const auto place = places_.find(address); place != places_.end()) {
    order_.splice(order_.begin(), order_, place->second);
  }
}

std::optional<std::string> RecoveryOrder::Next() {
  if (order_.empty()) {
    return std::nullopt;
  }
  std::string next = std::move(order_.front());
  order_.pop_front();
  places_.erase(next);
  return next;
}

}  // namespace gantry::task
