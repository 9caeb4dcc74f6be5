// SPDX-License-Identifier: Apache-2.0
//
// What of a container goes to disk, and what to the keeper.
#include "core/task/container.h"

#include <chrono>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/retired.h"
#include "core/link/messages.h"
#include "core/task/contexts.h"
#include "core/task/sandboxes.h"
#include "core/task/stdio_host.h"

namespace gantry::task {
namespace {

/// Of records of containers whose shares were updated.
constexpr auto kWeightFormula = "cpu-weight-formula";
constexpr auto kQuadratic = "quadratic";
constexpr auto kLinear = "linear";
/// Of records whose cgroups we make: they are ours to remove.
constexpr auto kMadeCgroups = "made-cgroups";
constexpr std::string_view kMaking = "making";
constexpr std::string_view kMade = "made";
/// The unit that they have besides.
constexpr auto kScope = "made-scope";

}  // namespace

TaskProcess::TaskProcess(Container& owner, ExecId exec) : container(owner), id(std::move(exec)) {}

TaskProcess::~TaskProcess() {
  backend.reset();
  backend::Retire(std::move(context));
}

void TaskProcess::SetSpec(std::string json) {
  spec_json = std::move(json);
  const size_t bytes = sizeof(TaskProcess) + spec_json.size();
  held = async::HeldBytes(container.group->account, bytes);
  held_specs = async::HeldBytes(container.group->exec_specs, bytes);
  held_of_all = async::HeldBytes(container.group->all_exec_specs, bytes);
}

void TaskProcess::SetSaved(std::string blob) {
  saved = std::move(blob);
  held_saved = async::HeldBytes(container.group->account, saved.size());
}

void TaskProcess::Acknowledge() {
  if (!is_init()) {
    // They were for the start, and for who takes up what runs.
    SetSpec({});
    SetSaved({});
  }
  life.Acknowledge();
}

void TaskProcess::CutStartShort() {
  if (starting) {
    starting->End(Format("container {} init process is not running", container.id.str()));
  }
}

Container::Container(ContainerId container_id, std::shared_ptr<const Group> group_in)
    : id(std::move(container_id)), group(std::move(group_in)) {}

Container::~Container() {
  backend.reset();
  backend::Retire(std::move(context));
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

store::ProcessRecord ToProcessRecord(const TaskProcess& process) {
  store::ProcessRecord record;
  record.pid = process.host_pid;
  record.start_time = process.start_time;
  record.shown_pid = HostPid{static_cast<int32_t>(process.pid)};
  if (const std::optional<ExitStatus>& exit = process.life.exit()) {
    record.exited = true;
    record.exit_status = exit->status;
    record.exited_at_ns = exit->exited_at_ns;
    record.unpublished = process.life.unpublished();
  }
  if (process.is_init() || !record.exited) {
    record.saved = process.saved;
  }
  return record;
}

void Container::SetScope(std::string unit) {
  if (!scope.empty() && cleanup == StopCommand(scope, bundle)) {
    cleanup.reset();
  }
  scope = std::move(unit);
  if (!scope.empty() && !cleanup) {
    cleanup = StopCommand(scope, bundle);
  }
}

CgroupOrigin OriginOf(const store::Record& record) {
  const auto blob = record.blobs.find(kMadeCgroups);
  if (blob == record.blobs.end()) {
    return CgroupOrigin::kForeign;
  }
  return blob->second == kMade ? CgroupOrigin::kMade : CgroupOrigin::kMaking;
}

std::string ScopeOf(const store::Record& record) {
  const auto blob = record.blobs.find(kScope);
  return blob == record.blobs.end() ? std::string() : blob->second;
}

link::Command StopCommand(const std::string& scope, const std::string& folder) {
  // Both where /bin is a folder of its own.
  const char* const program =
      Exists("/usr/bin/systemctl") ? "/usr/bin/systemctl" : "/bin/systemctl";
  return {.argv = {program, "--quiet", "stop", scope}, .env = {}, .cwd = folder};
}

std::optional<cgroup::CpuWeightFormula> WeightFormulaOf(const store::Record& record) {
  const auto blob = record.blobs.find(kWeightFormula);
  if (blob == record.blobs.end()) {
    return std::nullopt;
  }
  return blob->second == kLinear ? cgroup::CpuWeightFormula::kLinear
                                 : cgroup::CpuWeightFormula::kQuadratic;
}

store::Record ToRecord(const Container& container) {
  store::Record record;
  record.ns = container.group->ns;
  record.id = container.id.str();
  record.sandbox_id = container.group->id == container.id.str() ? "" : container.group->id;
  record.bundle = container.bundle;
  record.handler = container.handler;
  record.options_json = container.options_json;
  record.stdio = container.init->stdio;
  record.state = container.init->life.state();
  record.init = ToProcessRecord(*container.init);
  for (const auto& [id, exec] : container.execs) {
    record.execs.push_back({id, exec->spec_json, exec->stdio, exec->life.state(),
                            ToProcessRecord(*exec), exec->stdin_closed});
  }
  for (const auto& [id, process] : container.deleted_execs) {
    record.execs.push_back({id, "", {}, State::kDeleting, process, false});
  }
  record.mounts = container.mounts;
  record.cgroups = container.cgroup_dirs;
  record.state_dirs = container.state_dirs;
  record.cleanup = container.cleanup;
  record.sandbox_prefix = container.sandbox_prefix;
  record.backend = container.backend_name;
  record.blobs["container"] = container.blob;
  if (!container.cgroup.empty()) {
    record.blobs["cgroup"] = container.cgroup.Encode();
  }
  if (IsOurs(container.cgroup_origin)) {
    record.blobs[kMadeCgroups] = container.cgroup_origin == CgroupOrigin::kMade ? kMade : kMaking;
  }
  if (!container.scope.empty()) {
    record.blobs[kScope] = container.scope;
  }
  if (container.weight_formula) {
    record.blobs[kWeightFormula] =
        *container.weight_formula == cgroup::CpuWeightFormula::kLinear ? kLinear : kQuadratic;
  }
  if (container.sandbox && container.sandbox->blob_owner.lock().get() == &container) {
    record.blobs["sandbox"] = container.sandbox->blob;
  }
  record.created_at_ns = container.created_at_ns;
  record.annotations = container.annotations;
  record.checkpoint = container.checkpoint;
  record.rootfs = container.rootfs;
  record.netns_path = container.netns_path;
  record.private_pids = container.private_pids;
  return record;
}

link::LastResort ToLastResort(const Container& container) {
  link::LastResort last_resort;
  const TaskProcess& init = *container.init;
  if (init.host_pid && !init.life.exit()) {
    last_resort.init = link::ProcessRef{init.host_pid.value, init.start_time};
  }
  last_resort.cgroup_dirs = container.cgroup_dirs;
  last_resort.state_dirs = container.state_dirs;
  last_resort.cleanup = container.cleanup;
  if (!container.mounts.empty()) {
    last_resort.mounts.push_back(container.rootfs);
  }
  return last_resort;
}

}  // namespace gantry::task
