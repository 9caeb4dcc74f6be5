// SPDX-License-Identifier: Apache-2.0
//
// How the last processes ended that had a name, after the engine has acknowledged their ends:
// what a later engine must not take for a process that never was.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/link/messages.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class EndedNames {
 public:
  /// The oldest goes where there is one more.
  static constexpr size_t kMax = 1024;

  /// Takes the place of an older one of that name.
  void Add(const std::string& name, const link::Exit& exit);
  /// The name is another process's from here on.
  void Forget(const std::string& name);
  /// The oldest first.
  std::vector<link::EndedName> All() const;

 private:
  uint64_t next_order_ = 0;
  std::map<uint64_t, link::EndedName> ended_;
  std::map<std::string, uint64_t, std::less<>> order_of_;
};

}  // namespace gantry::keeper
