// SPDX-License-Identifier: Apache-2.0
//
// The file in which an engine keeps for the next one, and for `gantryctl doctor`, what canaries
// have shown: the last of each pair of VMM and kernel.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "plugins/vmm/hypervisor/accelerator.h"

namespace gantry::vmm {

struct Found {
  Acceleration what;
  /// Of the steady clock, which begins with the node.
  std::chrono::steady_clock::time_point at;
};

/// Another VMM, kernel or device makes another text. Blocks: briefly.
std::string KvmKeyOf(const KvmQuestion& question);

/// None: nothing was found out of that, or the file is damaged.
std::optional<Found> ReadFound(const std::string& keep_dir, const std::string& key);
/// `keep_dir` is made where it is not there. Where it cannot be kept the next engine finds it out
/// again. Of the last 32. One at a time.
void KeepFound(const std::string& keep_dir, const std::string& key, const Found& found);

}  // namespace gantry::vmm
