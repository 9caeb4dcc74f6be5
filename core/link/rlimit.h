// SPDX-License-Identifier: Apache-2.0
//
// Resource limits of processes: of one that is to be started, and of containerd.
#pragma once

#include <cstdint>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::link {

/// One resource limit, as setrlimit(2) takes it.
struct Rlimit {
  int32_t resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;

  bool operator==(const Rlimit&) const = default;

  void Each(this auto& self, auto&& field) {
    field(1, self.resource);
    field(2, self.soft);
    field(3, self.hard);
  }
};

/// The limits of this process, as far as the kernel tells them.
std::vector<Rlimit> OwnRlimits();

/// Of what somebody else says those that a process can have: one for each resource of this
/// kernel, the soft one no higher than the hard one.
std::vector<Rlimit> ValidRlimits(const std::vector<Rlimit>& said);

}  // namespace gantry::link
