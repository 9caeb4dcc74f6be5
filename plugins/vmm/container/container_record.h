// SPDX-License-Identifier: Apache-2.0
//
// What is on record of a container: that it was made, its limits as they are now, and how many
// kills for want of memory the core has been told of. The guest counts these, and tells the count
// again to whoever dials anew; so the next engine tells only those that came after.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <gantry/container.h>
#include <gantry/error.h>

#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/container/guest_spec.h"

namespace gantry::vmm {

/// Thread: any.
class ContainerRecord {
 public:
  /// `context` must outlive it, up to `Retire`.
  explicit ContainerRecord(ContainerContext& context) : context_(&context) {}

  /// As an engine before this one has kept it. False: `blob` is none.
  bool TakeUp(const std::string& blob);
  /// The container was made, or has other limits. Errors: as `ContainerContext::Save`.
  /// Blocks: for a write.
  Status Keep(const Limits& limits);
  Limits limits() const;
  /// By the node's clock; 0: not known.
  int64_t made_at_ns() const;

  /// `kills`: since the container was made. Again, and what was told: nothing. A guest that counts
  /// without end is heard a few times a second. Blocks: for a write.
  void OutOfMemory(uint64_t kills);
  /// Its container is being destroyed.
  void Retire();

 private:
  Status Save();

  /// Guards what follows; held while the core takes note.
  mutable std::mutex mutex_;
  ContainerContext* context_;
  Limits limits_;
  uint64_t told_kills_ = 0;
  bool is_kept_ = false;
  int64_t made_at_ns_ = 0;
  LineLimit rate_;
};

}  // namespace gantry::vmm
