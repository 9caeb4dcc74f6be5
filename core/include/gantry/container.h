// SPDX-License-Identifier: Apache-2.0
//
// A container in a sandbox, as a backend implements it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/metrics.h>
#include <gantry/process.h>

namespace gantry {

/// What a backend knows about a process inside a container.
struct ProcessInfo {
  /// A host pid, or the backend's own number where there is none.
  uint32_t pid = 0;
  /// Set where the process is an exec's.
  ExecId exec;
};

/// Everything a backend is told about a container to create.
struct ContainerRequest {
  ContainerId id;
  /// Absolute path; holds config.json.
  std::string bundle;
  /// config.json as it is, checked by the core to be an OCI spec.
  std::string spec_json;
  /// Absolute path of the root file system, mounted.
  std::string rootfs;
  bool terminal = false;
  /// A checkpoint to restore from at Start; empty: none.
  std::string checkpoint;
  /// The runtime options that came with this container, as JSON; or empty.
  std::string options_json;
  /// In `RecoverContainer`: what its init was last given with `ProcessContext::Save`. Empty:
  /// nothing was, and in `CreateContainer`.
  std::string init_saved;
};

/// Everything a backend is told about an exec to prepare.
struct ExecRequest {
  ExecId id;
  /// The OCI `process` object, with `terminal` as containerd wants it.
  std::string process_json;
  bool terminal = false;
  /// In `RecoverExec`: what was last kept with `ProcessContext::Save`. Empty: nothing was, and
  /// in `Exec`.
  std::string saved;
};

struct CheckpointRequest {
  /// Directory to fill; exists.
  std::string path;
  std::string work_path;
  bool exit = false;
  bool open_tcp = false;
  bool external_unix_sockets = false;
  bool terminal = false;
  bool file_locks = false;
  std::vector<std::string> empty_namespaces;
  std::string cgroups_mode;
};

/// A program of the host's, as it is run where no engine is.
struct HostCommand {
  /// `argv[0]` is its absolute path.
  std::vector<std::string> argv;
  /// `NAME=value`; the whole environment.
  std::vector<std::string> env;
  /// Absolute. A directory that is not there when it is run: `/`.
  std::string cwd;
};

/// A point in a container's life at which hooks of its spec run on the host.
/// Source: opencontainers/runtime-spec 1.2, runtime.md (lifecycle).
enum class HookPoint {
  /// prestart, then createRuntime: last in `CreateContainer`, when its namespaces are there.
  kCreate,
  /// poststart: last in its `Start`.
  kStart,
  /// poststop: last in its `Delete`, and where it could not be made.
  kDelete,
};

/// Hooks of a container's spec that belong inside, where its backend alone can run them.
struct InsideHooks {
  bool create_container = false;
  bool start_container = false;
};

/// Which devices the processes in a container's cgroups may use.
enum class CgroupDevices {
  /// Those that `linux.resources.devices` allows, and what each container has (`/dev/null`, zero,
  /// full, random, urandom, tty, terminals; devices may be made and not used then); no other.
  /// For a backend that runs the container's own processes there.
  kOfSpec,
  /// What the cgroup above may. For a backend that runs there what stands between the container
  /// and the node and keeps it from devices by itself: a sentry or a VMM, which may need
  /// /dev/kvm.
  kNotLimited,
};

/// Lent by the core to one container. Lives at least until that `Container`
/// has been destroyed. Thread: any.
class ContainerContext {
 public:
  ContainerContext(const ContainerContext&) = delete;
  ContainerContext& operator=(const ContainerContext&) = delete;
  virtual ~ContainerContext() = default;

  /// The init process's own context.
  virtual ProcessContext& init() = 0;
  /// The container's processes are in the cgroups of this host process: the
  /// core does statistics, pause, resume, update, pids, "kill all" and OOM
  /// there, as far as the backend leaves these calls out. On record: not needed again
  /// after a restart of the engine, where the backend has saved something since. After `Delete`
  /// the core removes those that are left and empty; others, in use or not, stay.
  /// Errors: kNotFound when the process is gone. Blocks: reads /proc.
  virtual Status UseCgroupsOf(const HostProcess& process) = 0;
  /// Makes the cgroups that the container's spec names (`linux.cgroupsPath`), with its limits
  /// (`linux.resources`), for a backend whose processes no OCI runtime places. Devices are limited
  /// as `devices` says: by v1's controller, or a BPF program that stays with the cgroup of v2.
  /// Gives their directories, for `SpawnRequest::cgroups`; none: the spec names no cgroup.
  /// From now on as after `UseCgroupsOf`, and the core removes them with the container: what
  /// is in them after its `Delete` is killed. To be called in `CreateContainer`. On record
  /// before they are made. Again, also after a restart of the engine: the same ones, as they are.
  /// Where the spec names a scope and systemd is the node's init, systemd has that unit as soon as
  /// `CreateContainer` is done, if a process is in the cgroup by then; there must be none below it.
  /// Errors: kInvalidArgument: no such path can be, the kernel refuses a limit, or a rule for
  /// devices is none, or one that v1 cannot keep (it denies one of a class that is allowed);
  /// kFailedPrecondition: they are another container's, have processes or are frozen, or the
  /// node has no cgroups; kNotFound, kUnimplemented: it lacks what a limit needs; kUnavailable:
  /// systemd does not answer. Nothing stays made then. Blocks: on files, and some seconds for
  /// systemd. Thread: workers.
  virtual Result<std::vector<std::string>> MakeCgroups(CgroupDevices devices) = 0;
  /// The hooks of the container's spec are to be run by the core, for a backend whose OCI runtime
  /// does not run them: to be called in `CreateContainer`, before what a failure of it would have
  /// to undo with `RunHooks(kDelete)`. Gives those that the core does not run. A backend that
  /// calls neither this nor `RunHooks` sees to hooks itself.
  /// Errors: kInvalidArgument naming the hook and what it must be. Blocks: reads config.json.
  /// Thread: workers.
  virtual Result<InsideHooks> BeginHooks() = 0;
  /// The container stands at that point: runs the hooks that belong there, one by one, as the
  /// spec has them, and waits for them. Each is told the container's state with `pid`, the
  /// process that stands for the container (none: no process); how long it may take is its own
  /// `timeout`, two minutes, or what is left of the call but for some time to undo it.
  /// Errors, of the first that fails, after which no more are run: kInternal with its status and
  /// the last that it said; kDeadlineExceeded; kInvalidArgument: no such program. Those of
  /// kDelete are all run, each once, over a restart of the engine too; that one fails is logged.
  /// A Start that was cut short in kStart comes again, whatever `HasStarted` says: those that have
  /// ended well are not run again, and one that still runs is waited for. One that an engine
  /// before this one was waiting for at another point is ended by kDelete.
  /// Blocks: as long as they run. Thread: workers, one call at a time.
  virtual Status RunHooks(HookPoint point, HostPid pid) = 0;
  /// Directories outside the bundle that hold this container's state and nothing
  /// else: they are removed with it where neither backend nor engine can do it.
  virtual void UseStateDirs(std::vector<std::string> dirs) = 0;
  /// Where neither backend nor engine can end this container, the keeper or the shim runs this
  /// command once, for what only an OCI runtime can do (its hooks, systemd's units): when the
  /// container's processes have been killed, and before its cgroups and state directories are
  /// removed. It has a few seconds and is then killed. It must do nothing for a container that
  /// has been deleted. While another process holds a lock (flock(2)) on its `cwd` it is not run:
  /// so the backend's own way to delete keeps it off. On record not before the next `Save`.
  /// Only a program that none but root can replace is run. 16 KiB at most in all; what is no
  /// such command is logged and left out.
  virtual void UseCleanup(HostCommand command) = 0;
  /// The container ran out of memory, as its cgroups cannot tell: it has none, or its processes
  /// are elsewhere. Before its end is said. Where they have told it, it is not told again.
  virtual void OutOfMemory() = 0;
  /// Keeps the backend's state of this container; it comes back at recovery.
  /// On disk when this returns. Errors: kInvalidArgument above `kMaxSaved`.
  /// Blocks: for a write. Thread: workers.
  virtual Status Save(std::string blob) = 0;

 protected:
  ContainerContext() = default;
};

/// A container; as a `Process` it is the container's init.
/// Thread: workers, one call at a time; `Kill`, `KillAll`, `Stats` and
/// `Processes` at any time.
///
/// The calls with a default body are optional. Where one is left out and the
/// container uses cgroups of the host, the core does the work; else the answer
/// is UNIMPLEMENTED.
class Container : public Process {
 public:
  /// Of one that is taken up again, and was created as far as its record tells: whether its
  /// Start took effect all the same. The record follows the start: the engine may have died
  /// between the two, or its disk be full. False where the Start comes again and is harmless.
  virtual Result<bool> HasStarted() { return false; }

  /// Signals every process of the container.
  virtual Status KillAll([[maybe_unused]] uint32_t signal) { return LeftOut("kill all"); }

  virtual Status Pause() { return LeftOut("pause"); }

  virtual Status Resume() { return LeftOut("resume"); }

  /// `resources_json`: OCI LinuxResources.
  virtual Status Update([[maybe_unused]] const std::string& resources_json) {
    return LeftOut("update");
  }

  /// What it has used until now, also when it has ended or was not started.
  virtual Result<ContainerMetrics> Stats() { return LeftOut("stats"); }

  virtual Result<std::vector<ProcessInfo>> Processes() { return LeftOut("processes"); }

  virtual Status Checkpoint([[maybe_unused]] const CheckpointRequest& request) {
    return LeftOut("checkpoint");
  }

  /// Prepares an exec; nothing runs before its `Start`. `context` outlives the
  /// returned object.
  virtual Result<std::unique_ptr<Process>> Exec([[maybe_unused]] const ExecRequest& request,
                                                [[maybe_unused]] ProcessContext& context) {
    return LeftOut("exec");
  }

  /// As `Exec`, after a restart of the engine, for an exec that had been
  /// prepared and whose end is not known. `started`: its Start had been called. What it has
  /// kept with `ProcessContext::Save` is in `request`. The backend
  /// then binds it or says how it ended; kAborted: that start never took effect, and the Start
  /// that is replayed runs it. Other errors: its host process keeps its exit, and its calls
  /// answer UNAVAILABLE.
  virtual Result<std::unique_ptr<Process>> RecoverExec([[maybe_unused]] const ExecRequest& request,
                                                       [[maybe_unused]] ProcessContext& context,
                                                       [[maybe_unused]] bool started) {
    return LeftOut("recover exec");
  }

  /// `Delete` (of `Process`) on a container: kills what still runs and removes
  /// every trace outside the bundle; for a container half-made too.

 protected:
  static std::unexpected<Error> LeftOut(std::string_view call) {
    return Fail(Code::kUnimplemented, "{}: not implemented by this backend", call);
  }
};

}  // namespace gantry
