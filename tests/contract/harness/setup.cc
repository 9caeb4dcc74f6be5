// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/setup.h"

#include <algorithm>
#include <array>

namespace gantry::contract {

Setup& TheSetup() {
  static Setup setup;
  return setup;
}

std::vector<std::string> BackendNames() {
  if (!TheSetup().tested.empty()) {
    return TheSetup().tested;
  }
  std::vector<std::string> names;
  for (const Subject& subject : TheSetup().subjects) {
    names.push_back(subject.name);
  }
  return names;
}

Observed& TheObserved() {
  static Observed observed;
  return observed;
}

void NoteUnimplemented(std::string_view method, std::string_view message) {
  // Create and Start: of a terminal, for example, or of a pod without a pause
  // container. A plain one has to work before any rule is tried.
  constexpr std::array<std::string_view, 11> kOptional = {
      "Create", "CreateSandbox", "Start", "Exec",      "Pause",         "Resume",
      "Update", "Checkpoint",    "Stats", "ResizePty", "SandboxMetrics"};
  Observed& observed = TheObserved();
  if (observed.not_supported.empty() && std::ranges::contains(kOptional, method)) {
    observed.not_supported = message;
  }
}

}  // namespace gantry::contract
