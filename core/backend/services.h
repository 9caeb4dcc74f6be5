// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine that sandboxes, containers and their contexts use.
// Made once, by the daemon; everything in it outlives whoever holds it.
#pragma once

namespace gantry::async {
class Loop;
class WorkerPool;
}  // namespace gantry::async

namespace gantry::cgroup {
class CgroupHierarchy;
}  // namespace gantry::cgroup

namespace gantry::keeper_client {
class HostProcesses;
class KeeperLink;
}  // namespace gantry::keeper_client

namespace gantry::backend {

struct Services {
  async::Loop& loop;
  async::WorkerPool& pool;
  keeper_client::KeeperLink& link;
  keeper_client::HostProcesses& processes;
  const cgroup::CgroupHierarchy& cgroups;
};

}  // namespace gantry::backend
