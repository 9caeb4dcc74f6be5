// SPDX-License-Identifier: Apache-2.0
//
// Artifacts in memory, so that containers of one module share its pages, and why there are none.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/cache/entry.h"

namespace gantry::wasm {

/// What came of a module.
struct Outcome {
  /// Set: there is no artifact.
  std::optional<Error> failure;
  /// A sealed file in memory.
  UniqueFd file{};
  uint64_t bytes = 0;
  Kind kind = Kind::kModule;
  /// Seconds since the epoch; of a failure that is not kept, 0.
  int64_t kept_until = EntryHeader::kForEver;
};

/// The latest ones, up to a number of bytes. Thread: one at a time. Blocks: never.
class RecentOutcomes {
 public:
  explicit RecentOutcomes(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  struct Found {
    /// Null: it is not here.
    std::shared_ptr<const Outcome> outcome{};
    /// An hour or more has passed since the last time that this was so, or since `Add`.
    bool hourly = false;
  };

  /// It has been used now, in seconds since the epoch.
  Found Find(const std::string& key, int64_t now);
  /// What is larger than all that there may be is not taken.
  void Add(const std::string& key, std::shared_ptr<const Outcome> outcome, int64_t now);

  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Outcome> outcome;
    int64_t noted_at = 0;
  };

  using Entries = std::list<Entry>;

  static uint64_t CostOf(const Outcome& outcome);
  void Remove(Entries::iterator entry);

  const uint64_t max_bytes_;
  uint64_t bytes_ = 0;
  /// Those used last first.
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

}  // namespace gantry::wasm
