// SPDX-License-Identifier: Apache-2.0
//
// Which groups are still to be taken up after a restart of the engine, and in which order: as the
// keeper names them, but those that somebody waits for first.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/async/co.h"

namespace gantry::task {

/// Groups are named by their address. Thread: loop.
class RecoveryOrder {
 public:
  /// From now on until `SetDone` it is awaited. False: it was already.
  bool Expect(const std::string& address);
  /// What was in it has been taken up again. One that is not awaited: nothing.
  void SetDone(const std::string& address);
  /// Is set by `SetDone`; at once where it is not awaited.
  async::OneShot<void> DoneOf(const std::string& address) const;

  /// At the end. Again: nothing.
  void Add(const std::string& address);
  /// Somebody waits for this one: it is next. One that is not here: nothing.
  void Hurry(const std::string& address);
  /// Takes the next ones out, `most` of them. None: all have had their turn.
  std::vector<std::string> Next(size_t most);

 private:
  std::list<std::string> order_;
  std::unordered_map<std::string, std::list<std::string>::iterator> places_;
  std::map<std::string, async::OneShot<void>> awaited_;
};

}  // namespace gantry::task
