// SPDX-License-Identifier: Apache-2.0
//
// How processes ended that had a name, after the engine has acknowledged their ends: what a
// later engine must not take for a process that never was. The engine says when it no longer
// needs those of a sandbox or of a process's streams.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/link/messages.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class EndedNames {
 public:
  /// Where there is one more, the oldest of the owner goes that has the most: a container that
  /// starts processes by the thousands does not flush the ends of others. An owner is
  /// `link::ShareOf` a name.
  static constexpr size_t kMax = 1024;

  /// Takes the place of an older one of that name.
  void Add(const std::string& name, const link::Exit& exit);
  /// The name is another process's from here on.
  void Forget(std::string_view name);
  /// All names that begin with `prefix`. "": none.
  void ForgetBelow(std::string_view prefix);
  /// The oldest first.
  std::vector<link::EndedName> All() const;

 private:
  void Erase(uint64_t order);

  uint64_t next_order_ = 0;
  std::map<uint64_t, link::EndedName> ended_;
  std::map<std::string, uint64_t, std::less<>> order_of_;
  /// By owner.
  std::map<std::string, std::set<uint64_t>, std::less<>> of_;
};

}  // namespace gantry::keeper
