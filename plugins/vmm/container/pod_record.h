// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::vmm {

/// What is kept of a pod whose machine runs, for the next engine. Thread: any; plain data.
struct PodRecord {
  /// The container that the machine was started for; empty: the pod has none.
  std::string root{};
  /// Of the machine.
  std::vector<std::string> cgroups{};
  std::string netns{};
  /// How often the kernel had killed in these cgroups for want of memory before.
  uint64_t oom_kills = 0;
  /// Of `PodMachine::Save`; empty: it is being started.
  std::string machine{};

  std::string ToJson() const;
  /// Errors: kDataLoss: it is none.
  static Result<PodRecord> FromJson(const std::string& text);
};

}  // namespace gantry::vmm
