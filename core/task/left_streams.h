// SPDX-License-Identifier: Apache-2.0
//
// The streams of containers whose Create an engine's end interrupted: they are kept for the Create
// that is replayed, so that a client that has opened them sees no end.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/task/group.h"

namespace gantry::task {

/// Thread: loop.
class LeftStreams {
 public:
  /// Their names in the keeper's descriptor store, without the prefix of their process.
  using Names = std::vector<std::string>;

  void Put(const InstanceKey& key, Names names) { all_[key] = std::move(names); }

  /// Again: none.
  Names Take(const InstanceKey& key) {
    auto left = all_.extract(key);
    return left ? std::move(left.mapped()) : Names();
  }

 private:
  std::map<InstanceKey, Names> all_;
};

}  // namespace gantry::task
