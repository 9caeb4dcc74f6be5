// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/recent.h"

#include <iterator>
#include <utility>

namespace gantry::wasm {

/// With what it takes beside its bytes, so that failures are bounded, too; of a file that is a
/// descriptor, of which the engine has less than memory.
uint64_t RecentOutcomes::CostOf(const Outcome& outcome) {
  constexpr uint64_t kBeside = 1024;
  constexpr uint64_t kOfADescriptor = 256 << 10;
  return kBeside + outcome.bytes + (outcome.file ? kOfADescriptor : 0) +
         (outcome.failure ? outcome.failure->message.size() : 0);
}

RecentOutcomes::Found RecentOutcomes::Find(const std::string& key, int64_t now) {
  constexpr int64_t kHour = 3600;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return {};
  }
  if (found->second->outcome->kept_until < now) {
    Remove(found->second);
    return {};
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  Entry& entry = *found->second;
  const bool hourly = entry.noted_at + kHour <= now;
  entry.noted_at = hourly ? now : entry.noted_at;
  return {.outcome = entry.outcome, .hourly = hourly};
}

void RecentOutcomes::Add(const std::string& key, std::shared_ptr<const Outcome> outcome,
                         int64_t now) {
  if (const auto old = by_key_.find(key); old != by_key_.end()) {
    Remove(old->second);
  }
  const uint64_t cost = CostOf(*outcome);
  if (cost > max_bytes_) {
    return;
  }
  while (bytes_ + cost > max_bytes_) {
    Remove(std::prev(entries_.end()));
  }
  bytes_ += cost;
  entries_.push_front({key, std::move(outcome), now});
  by_key_[key] = entries_.begin();
}

void RecentOutcomes::Remove(Entries::iterator entry) {
  bytes_ -= CostOf(*entry->outcome);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace gantry::wasm
