// SPDX-License-Identifier: Apache-2.0
//
// What the Task service knows of one container: its processes, where it
// belongs, what must be undone. State only; what happens to it is in Creator,
// Starter, Remover and the files named after the calls (exec.cc, ...).
//
// Thread: loop, all of it, but what is handed to a worker by value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/container.h>
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/backend/call_processes.h"
#include "core/cgroup/oom_watch.h"
#include "core/events/event.h"
#include "core/link/command.h"
#include "core/store/record.h"
#include "core/task/group.h"
#include "core/task/life.h"
#include "core/task/record_file.h"
#include "core/task/sandboxes.h"
#include "core/task/state.h"

namespace gantry::io {
class ProcessIo;
}

namespace gantry::keeper_client {
class WatchedProcess;
using WatchedProcessPtr = std::shared_ptr<WatchedProcess>;
}  // namespace gantry::keeper_client

namespace gantry::link {
struct LastResort;
}

namespace gantry::task {

/// Who has made a container's cgroups.
enum class CgroupOrigin {
  /// A runtime, or nobody; the backend removes them.
  kForeign,
  /// We do, just now. An engine that finds this on record was killed at it.
  kMaking,
  /// We did.
  kMade,
  /// What there was is removed, with the container: no more are made.
  kRemoved,
};

/// They are ours to remove.
inline bool IsOurs(CgroupOrigin origin) {
  return origin == CgroupOrigin::kMaking || origin == CgroupOrigin::kMade;
}

struct Container;
class ContainerContextImpl;
class ProcessContextImpl;
class StdioHost;

/// A process of a container: its init (empty `id`) or an exec.
struct TaskProcess {
  TaskProcess(Container& owner, ExecId exec);
  ~TaskProcess();

  TaskProcess(const TaskProcess&) = delete;
  TaskProcess& operator=(const TaskProcess&) = delete;

  bool is_init() const { return id.empty(); }

  /// Of an exec: what it is made of.
  void SetSpec(std::string json);
  /// What its backend keeps of it.
  void SetSaved(std::string blob);
  /// Its end is on record and published.
  void Acknowledge();
  /// Its container ends: a start that is under way fails, whatever it hangs in.
  void CutStartShort();

  Container& container;
  const ExecId id;
  ProcessLife life;
  store::StdioPaths stdio;
  /// Of an exec: the OCI process object.
  std::string spec_json;
  std::string saved;
  async::HeldBytes held;
  async::HeldBytes held_saved;
  async::HeldBytes held_specs;
  async::HeldBytes held_of_all;
  /// The host process, where it is one.
  keeper_client::WatchedProcessPtr host;
  /// For the record, also where `host` is not there any more.
  HostPid host_pid;
  uint64_t start_time = 0;
  /// What containerd is told.
  uint32_t pid = 0;
  /// What the start that is under way has spawned. Null: none is.
  std::shared_ptr<backend::CallProcesses> starting;
  /// Of that start, whatever came of it.
  async::OneShot<void> start_done;
  /// CloseIO came, perhaps before the streams were open.
  bool stdin_closed = false;
  /// Names in the descriptor store that an earlier engine left of streams which
  /// it had only begun to open. Held, so that no client sees the end of its
  /// stream before the call that is replayed opens them again.
  std::vector<std::string> left_streams;
  /// Outlives its container where a Close is under way, and has `stdio_host` for as long.
  std::shared_ptr<io::ProcessIo> io;
  /// Of an exec; the init's is the container's. Shared with calls under way.
  std::shared_ptr<Process> backend;
  std::shared_ptr<StdioHost> stdio_host;
  std::unique_ptr<ProcessContextImpl> context;
  /// One start at a time.
  async::Slot slot;
};

using TaskProcessPtr = std::shared_ptr<TaskProcess>;

struct Container : std::enable_shared_from_this<Container> {
  Container(ContainerId container_id, GroupPtr group_in);
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  ~Container();

  /// Of its cgroups, ours; empty: none any more.
  void SetScope(std::string unit);

  events::Subject subject() const { return {group->ttrpc_address, group->ns, id}; }

  const ContainerId id;
  const GroupPtr group;
  /// The keeper's number for it.
  uint64_t instance = 0;
  std::string bundle;
  std::string rootfs;
  std::string handler;
  std::string backend_name;
  std::string options_json;
  std::string checkpoint;
  std::vector<store::MountedRecord> mounts;
  std::map<std::string, std::string> annotations;
  /// The network namespace that its spec names; empty: none, or a new one.
  std::string netns_path;
  bool private_pids = true;
  /// Its init has a security profile; not on record, for only its Create asks.
  bool confined = false;
  int64_t created_at_ns = 0;
  std::string blob;
  cgroup::Cgroup cgroup;
  CgroupOrigin cgroup_origin = CgroupOrigin::kForeign;
  /// systemd's unit of that cgroup, which is ours to remove with it; empty: it has none. On record
  /// before it is made.
  std::string scope;
  /// By which its cpu.weight is made of shares; nothing: not looked for yet.
  std::optional<cgroup::CpuWeightFormula> weight_formula;
  /// Its directories, for those who can only kill and remove by them.
  std::vector<std::string> cgroup_dirs;
  /// Outside the bundle, this container's alone.
  std::vector<std::string> state_dirs;
  /// Ends it where there is no engine, once its processes are dead.
  std::optional<link::Command> cleanup;
  /// What the names of its sandbox's descriptors and processes at the keeper begin
  /// with. Of the container that the sandbox was made for, and on record with each:
  /// whichever is taken up first finds them.
  std::string sandbox_prefix;
  std::unique_ptr<cgroup::OomWatch> oom;
  /// By that watch, in the time of this engine.
  bool oom_told = false;
  /// By whomever, in the time of this engine.
  bool ran_out_of_memory = false;
  SandboxEntryPtr sandbox;
  std::unique_ptr<ContainerContextImpl> context;
  /// Null while it is being made. Shared with calls under way.
  std::shared_ptr<gantry::Container> backend;
  TaskProcessPtr init;
  std::map<ExecId, TaskProcessPtr> execs;
  /// Whose Delete may not have been answered yet: for the one that is replayed.
  std::map<ExecId, store::ProcessRecord> deleted_execs;
  /// Create, Start, Exec, Delete, Pause, Update and Checkpoint, in the order
  /// in which they came. Kill, State, Wait and Stats never wait for it.
  async::Slot slot;
  /// Set when it has been taken up again after a restart of the engine; at
  /// once for a new one. Calls wait for it.
  async::OneShot<void> ready;
  /// Set when nothing of it is left and its id is free.
  async::OneShot<void> left;
  RecordFile record;
  /// containerd has given it up and publishes its end itself.
  bool abandoned = false;
};

using ContainerPtr = std::shared_ptr<Container>;

/// Nanoseconds since 1970.
int64_t NowNs();
store::ProcessRecord ToProcessRecord(const TaskProcess& process);
/// By its record.
CgroupOrigin OriginOf(const store::Record& record);
/// By its record.
std::string ScopeOf(const store::Record& record);
/// What ends that unit where there is no engine; `folder`: what nobody else may be taking apart.
link::Command StopCommand(const std::string& scope, const std::string& folder);
/// By its record.
std::optional<cgroup::CpuWeightFormula> WeightFormulaOf(const store::Record& record);
/// The container as it goes to disk.
store::Record ToRecord(const Container& container);
/// How the keeper alone can end it.
link::LastResort ToLastResort(const Container& container);

}  // namespace gantry::task
