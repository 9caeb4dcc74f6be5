// SPDX-License-Identifier: Apache-2.0
#include "core/task/recovery_order.h"

#include <utility>

namespace gantry::task {

bool RecoveryOrder::Expect(const std::string& address) {
  return awaited_.try_emplace(address).second;
}

void RecoveryOrder::SetDone(const std::string& address) {
  if (auto done = awaited_.extract(address)) {
    done.mapped().Set();
  }
}

async::OneShot<void> RecoveryOrder::DoneOf(const std::string& address) const {
  if (const auto found = awaited_.find(address); found != awaited_.end()) {
    return found->second;
  }
  async::OneShot<void> done;
  done.Set();
  return done;
}

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

std::vector<std::string> RecoveryOrder::Next(size_t most) {
  std::vector<std::string> next;
  while (next.size() < most && !order_.empty()) {
    next.push_back(std::move(order_.front()));
    order_.pop_front();
    places_.erase(next.back());
  }
  return next;
}

}  // namespace gantry::task
