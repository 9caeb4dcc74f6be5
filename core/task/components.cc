// SPDX-License-Identifier: Apache-2.0
#include "core/task/components.h"

#include "core/task/container.h"

namespace gantry::task {

Components::Components(const Parts& from, const Pods& pods)
    : parts(from),
      records(parts.services),
      calls(parts),
      proxy(calls),
      exits(parts, containers, records, proxy, figures),
      sandboxes(parts, calls, proxy),
      meter(parts.services.loop, sandboxes, figures, parts.recorder),
      members(parts, instances, containers, records, calls, sandboxes, pods),
      remover(parts, containers, records, calls, proxy, members),
      console_signals(parts, proxy),
      factory(parts, exits, console_signals) {}

Components::~Components() = default;

}  // namespace gantry::task
