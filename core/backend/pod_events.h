// SPDX-License-Identifier: Apache-2.0
//
// What a pod hears from its backend's context.
#pragma once

#include <functional>
#include <memory>

#include <gantry/error.h>
#include <gantry/process.h>

namespace gantry::keeper_client {
class WatchedProcess;
using WatchedProcessPtr = std::shared_ptr<WatchedProcess>;
}  // namespace gantry::keeper_client

namespace gantry::backend {

/// Who is told of a pod's process and its end. Thread: loop.
struct PodEvents {
  std::function<Status(keeper_client::WatchedProcessPtr)> bound;
  std::function<void(HostPid)> pid;
  std::function<void(ExitStatus)> exited;
};

}  // namespace gantry::backend
