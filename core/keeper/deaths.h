// SPDX-License-Identifier: Apache-2.0
//
// What engines were taking up when they crashed. A record, a process or a backend's state
// that ends every engine which looks at it must not keep the others of the node from being
// served, so:
//
//   a group that an engine was taking up when it crashed has one death more, and the next
//   engine takes such groups up last and one at a time, so that its last word names one;
//   with `kMost` deaths a group is left out: no engine hears its calls, the keeper answers
//   them, and it can still be deleted by the last resort that an engine left;
//   what has not crashed an engine for a while is forgiven, and what is left out is tried
//   once more by the next engine.
//
// Requests are counted apart (front_door.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/keeper/instances.h"
#include "core/link/messages.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class Deaths {
 public:
  static constexpr uint32_t kMost = 3;

  /// The counts are kept with the instances, `told.deaths`.
  explicit Deaths(Instances& instances) : instances_(instances) {}

  void OnRecovering(const link::Recovering& said);

  /// It is taking up something.
  bool recovering() const { return !recovering_.empty(); }

  /// Of a new instance: what its group has.
  void Enter(Instance& instance) const;
  /// Before the next engine is told what there is: sets `told.left_out`.
  void EngineUp();
  /// The one in charge crashed.
  void EngineCrashed();
  /// No engine has crashed for a while, or an operator wants another try.
  void Forgive();

  /// Why the calls of a group that is left out get no other answer.
  static std::string Refusal(const Instance& instance);

  std::vector<std::string> Save() const { return {recovering_.begin(), recovering_.end()}; }

  void Restore(const std::vector<std::string>& recovering) {
    recovering_.insert(recovering.begin(), recovering.end());
  }

 private:
  Instances& instances_;
  /// Addresses.
  std::set<std::string> recovering_;
};

}  // namespace gantry::keeper
