// SPDX-License-Identifier: Apache-2.0
//
// What happens to a pod without a pause container. containerd hears of it by its calls alone; this
// is for who watches.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <gantry/ids.h>
#include <gantry/process.h>

namespace gantry::events {

struct SandboxEvent {
  /// "created", "started", "exited", "deleted".
  std::string_view what;
  const Namespace& ns;
  const SandboxId& id;
  uint32_t pid = 0;
  ExitStatus exit{};
};

/// Thread: loop.
using SandboxObserver = std::function<void(const SandboxEvent&)>;

}  // namespace gantry::events
