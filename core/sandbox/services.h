// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine that sandboxes, containers and their contexts use.
// Made once, by the daemon; everything in it outlives whoever holds it.
#pragma once

#include "core/engine/host_processes.h"
#include "core/engine/keeper_link.h"
#include "core/os/cgroup.h"
#include "core/os/loop.h"
#include "core/os/worker_pool.h"

namespace gantry::sandbox {

struct Services {
  os::Loop& loop;
  os::WorkerPool& pool;
  engine::KeeperLink& link;
  engine::HostProcesses& processes;
  const os::CgroupHierarchy& cgroups;
};

}  // namespace gantry::sandbox
