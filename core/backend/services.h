// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine that sandboxes, containers and their contexts use.
// Made once, by the daemon; everything in it outlives whoever holds it.
#pragma once

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/cgroup/cgroup.h"
#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"

namespace gantry::backend {

struct Services {
  async::Loop& loop;
  async::WorkerPool& pool;
  keeper_client::KeeperLink& link;
  keeper_client::HostProcesses& processes;
  const os::CgroupHierarchy& cgroups;
};

}  // namespace gantry::backend
