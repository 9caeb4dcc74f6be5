// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/proto/proto_message.h>

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
  /// Of `PodMachine::Save`, any bytes; empty: it is being started.
  std::string machine{};

  void Each(this auto& self, auto&& field) {
    field(1, self.root);
    field(2, self.cgroups);
    field(3, self.netns);
    field(4, self.oom_kills);
    field(5, self.machine);
  }
};

/// Of `EncodeProto`. Errors: kDataLoss: it is none.
Result<PodRecord> ReadPodRecord(const std::string& bytes);

}  // namespace gantry::vmm
