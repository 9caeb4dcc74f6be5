// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/ended_names.h"

#include <algorithm>
#include <utility>

#include "core/link/name_owner.h"

namespace gantry::keeper {

void EndedNames::Add(const std::string& name, const link::Exit& exit) {
  Forget(name);
  const uint64_t order = next_order_++;
  ended_[order] = {name, exit.pid, exit.start_time, exit.wait_status, exit.exited_at_ns};
  order_of_[name] = order;
  of_[std::string(link::ShareOf(name))].insert(order);
  if (ended_.size() > kMax) {
    // Of several that have as many, the one whose oldest is the oldest.
    const auto most = std::ranges::max_element(of_, {}, [](const auto& item) {
      return std::pair(item.second.size(), -static_cast<int64_t>(*item.second.begin()));
    });
    Erase(*most->second.begin());
  }
}

void EndedNames::Forget(std::string_view name) {
  if (const auto found = order_of_.find(name); found != order_of_.end()) {
    Erase(found->second);
  }
}

void EndedNames::ForgetBelow(std::string_view prefix) {
  if (prefix.empty()) {
    return;
  }
  for (auto next = order_of_.lower_bound(prefix);
       next != order_of_.end() && next->first.starts_with(prefix);) {
    Erase((next++)->second);
  }
}

void EndedNames::Erase(uint64_t order) {
  const auto ended = ended_.extract(order);
  const std::string& name = ended.mapped().name;
  order_of_.erase(name);
  const auto of = of_.find(link::ShareOf(name));
  of->second.erase(order);
  if (of->second.empty()) {
    of_.erase(of);
  }
}

std::vector<link::EndedName> EndedNames::All() const {
  std::vector<link::EndedName> all;
  all.reserve(ended_.size());
  for (const auto& [order, one] : ended_) {
    all.push_back(one);
  }
  return all;
}

}  // namespace gantry::keeper
