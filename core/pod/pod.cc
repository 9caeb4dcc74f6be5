// SPDX-License-Identifier: Apache-2.0
//
// What of a pod goes to disk, to its backend and to the keeper.
#include "core/pod/pod.h"

#include <gantry/toolkit/process/process_id.h>

#include "core/config/config.h"
#include "core/keeper_client/host_processes.h"
#include "core/link/messages.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

store::Record ToRecord(const Pod& pod) {
  store::Record record;
  record.kind = store::Kind::kSandbox;
  record.ns = pod.group->ns;
  record.id = pod.id.str();
  record.bundle = pod.bundle;
  record.handler = pod.handler;
  record.backend = pod.backend_name;
  record.options_json = pod.options_json;
  record.state = pod.life.state();
  record.init.pid = pod.host_pid;
  record.init.start_time = pod.start_time;
  record.init.shown_pid = HostPid{static_cast<int32_t>(pod.pid)};
  if (const std::optional<ExitStatus>& exit = pod.life.exit()) {
    record.init.exited = true;
    record.init.exit_status = exit->status;
    record.init.exited_at_ns = exit->exited_at_ns;
  }
  record.mounts = pod.mounts;
  record.sandbox_prefix = pod.prefix;
  record.created_at_ns = pod.created_at_ns;
  record.netns_path = pod.netns_path;
  record.annotations = pod.annotations;
  record.pod_config = pod.config;
  record.cgroups = pod.cgroups.own.Dirs();
  if (pod.cgroups.made) {
    record.blobs[std::string(kMadeCgroup)] = "1";
  }
  if (pod.entry) {
    record.blobs["sandbox"] = pod.entry->blob;
  }
  if (pod.life.state() == State::kStarting) {
    record.blobs[std::string(kCreatedBlob)] = pod.created_blob;
  }
  return record;
}

SandboxRequest SandboxRequestOf(const Pod& pod) {
  SandboxRequest request;
  request.id = pod.id;
  request.ns = pod.group->ns;
  request.kind = SandboxKind::kPauseless;
  request.bundle = pod.bundle;
  request.options_json = pod.options_json;
  request.netns_path = pod.netns_path;
  request.annotations = pod.annotations;
  request.pod_config = pod.config;
  request.cgroups = pod.cgroups.own.Dirs();
  request.containerd_address = pod.group->grpc_address;
  return request;
}

link::LastResort ToLastResort(const Pod& pod, const keeper_client::HostProcesses& processes) {
  link::LastResort last_resort;
  if (pod.host_pid && !pod.life.exit()) {
    last_resort.init = link::ProcessRef{pod.host_pid.value, pod.start_time};
  }
  for (const ProcessId& process : processes.SpawnedBelow(pod.prefix + "/")) {
    last_resort.processes.push_back({process.pid, process.start_time});
  }
  last_resort.cgroup_dirs = pod.cgroups.own.Dirs();
  for (const store::MountedRecord& mount : pod.mounts) {
    (mount.type == "tmpfs" ? last_resort.memory_mounts : last_resort.mounts)
        .push_back(mount.target);
  }
  return last_resort;
}

}  // namespace gantry::task
