// SPDX-License-Identifier: Apache-2.0
//
// In which order groups are taken up after a restart of the engine: as the keeper names
// them, but those that somebody waits for first.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

namespace gantry::task {

/// Thread: loop.
class RecoveryOrder {
 public:
  /// At the end. Again: nothing.
  void Add(const std::string& address);
  /// Somebody waits for this one: it is next. One that is not here: nothing.
  void Hurry(const std::string& address);
  /// Takes the next ones out, `most` of them. None: all have had their turn.
  std::vector<std::string> Next(size_t most);

 private:
  std::list<std::string> order_;
  std::unordered_map<std::string, std::list<std::string>::iterator> places_;
};

}  // namespace gantry::task
