// SPDX-License-Identifier: Apache-2.0
//
// Loop devices for file system images.
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::mount {

struct LoopDevice {
  /// /dev/loopN.
  std::string path;
  /// Keeps the device attached until something is mounted from it: it detaches
  /// itself (autoclear) when its last user is gone.
  UniqueFd fd;
};

/// Attaches `image` to a free loop device, partitions not scanned.
/// Errors: the errno's code; kUnavailable when others took every free device.
/// Thread: blocking pool.
Result<LoopDevice> AttachLoopDevice(const std::string& image, bool read_only, bool direct_io);

}  // namespace gantry::mount
