// SPDX-License-Identifier: Apache-2.0
#include "core/log/budget.h"

#include <functional>
#include <utility>

namespace gantry::log {
namespace {

/// Begins a new window where the last one is over.
template <class Entry>
void RenewWindow(Entry& entry, Budget::Clock::time_point now) {
  if (now - entry.begin > Budget::kWindow) {
    entry.begin = now;
    entry.count = 0;
  }
}

uint64_t Mix(uint64_t a, uint64_t b) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  return a ^ (b + kGolden + (a << 6) + (a >> 2));
}

/// Pieces of some KiB: few, and not much more than is needed.
constexpr size_t kEntriesInPiece = 128;

}  // namespace

Budget::Budget(std::pmr::memory_resource* memory)
    : pool_({.max_blocks_per_chunk = kEntriesInPiece, .largest_required_pool_block = 0}, memory),
      entries_(&pool_),
      by_key_(&pool_) {}

Budget::Entry& Budget::Find(uint64_t key, Clock::time_point now) {
  const auto [place, added] = by_key_.try_emplace(key);
  if (added) {
    entries_.push_front({key, 0, 0, now});
    place->second = entries_.begin();
    if (entries_.size() > kRemembered) {
      // Then too much is logged, never too little.
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
  } else {
    entries_.splice(entries_.begin(), entries_, place->second);
  }
  RenewWindow(entries_.front(), now);
  return entries_.front();
}

Budget::Answer Budget::Admit(const void* file, uint32_t line, bool is_error,
                             std::string_view subject, Clock::time_point now) {
  const uint64_t whose = std::hash<std::string_view>()(subject);
  Entry& site = Find(Mix(Mix(std::hash<const void*>()(file), line), whose), now);
  // What is about nobody has no subject that could be shut up.
  Entry* const about = subject.empty() ? nullptr : &Find(whose, now);
  RenewWindow(all_, now);
  const bool loud = about == nullptr || about->count >= kFloor;
  if (site.count >= (is_error ? kErrorBurst : kBurst) ||
      (about != nullptr && about->count >= kSubjectBurst) || (all_.count >= kGlobalBurst && loud)) {
    ++site.suppressed;
    return {};
  }
  ++site.count;
  ++all_.count;
  if (about != nullptr) {
    ++about->count;
  }
  return {true, std::exchange(site.suppressed, 0)};
}

void Budget::Clear() {
  entries_.clear();
  by_key_.clear();
  all_ = {};
}

}  // namespace gantry::log
