// SPDX-License-Identifier: Apache-2.0
//
// A life: the operations from the first to the last of one container or pod.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::fault {

struct Step {
  /// As the report names it.
  std::string operation;
  /// What a client does. The error is the client's.
  std::function<Status()> run;
  /// What must hold then: fails the test where it does not.
  std::function<void()> check = [] {};
  /// Makes room for another `run` after one that failed.
  std::function<void()> undo = [] {};
  /// The other `run`, where it is not the same.
  std::function<Status()> again{};
  /// A life without it is one, too.
  bool optional = false;
  /// The one after it is done exactly when this one is.
  bool with_next = false;
};

struct Life {
  std::vector<Step> steps;
  /// What must hold after the last one. `undisturbed`: no step had to be run again.
  std::function<void(bool undisturbed)> end = [](bool) {};
  /// Removes what is left of one that failed.
  std::function<void()> give_up = [] {};
};

}  // namespace gantry::fault
