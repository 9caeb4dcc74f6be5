// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/ended_names.h"

namespace gantry::keeper {

void EndedNames::Add(const std::string& name, const link::Exit& exit) {
  Forget(name);
  ended_[next_order_] = {name, exit.pid, exit.start_time, exit.wait_status, exit.exited_at_ns};
  order_of_[name] = next_order_++;
  if (ended_.size() > kMax) {
    Forget(std::string(ended_.begin()->second.name));
  }
}

void EndedNames::Forget(const std::string& name) {
  if (const auto found = order_of_.extract(name)) {
    ended_.erase(found.mapped());
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
