// SPDX-License-Identifier: Apache-2.0
//
// What this backend must know out of documents that others wrote: the OCI spec,
// the state that an OCI runtime keeps of a container, its log. All of it is
// foreign text: what is not as expected is left out, never trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry::runc {

/// The parts of config.json that decide who does a step.
struct SpecFacts {
  /// Hooks that the OCI runtime's own `start` and `delete` run.
  bool has_poststart = false;
  bool has_poststop = false;
  /// The kernel ends the rest of the container when its init ends.
  bool private_pids = false;
  /// `linux.cgroupsPath`, where it is a path.
  std::string cgroups_path;
  /// `linux.cgroupsPath` as it stands. Empty: none.
  std::string cgroups_text;
  /// The destination of the first mount whose owners are to be mapped. Empty: none.
  std::string idmapped_mount;
};

/// Errors: kInvalidArgument.
Result<SpecFacts> ReadSpec(const std::string& spec_json);

/// Whether a `cgroupsPath` names a scope of systemd's, `NAME.slice:PREFIX:NAME`, as dockerd writes
/// it and, with its systemd driver, the kubelet. Source: runc 1.1.15, docs/systemd.md; crun 1.21,
/// crun(1), "CGROUP".
bool NamesScope(std::string_view cgroups_path);

/// Whether what `features` printed promises id-mapped mounts. Source: OCI
/// runtime-spec 1.2, features-linux.md, "mountExtensions".
bool PromisesIdmappedMounts(const std::string& features_json);

enum class StateKind {
  /// No state directory.
  kNone,
  kCrun,
  kRunc,
  /// Another runtime's, or damaged, or without the time at which its process started.
  kUnknown,
};

/// What ROOT/ID says about a container.
struct RuntimeState {
  StateKind kind = StateKind::kNone;
  /// None: there is no process, or it is not known.
  HostPid pid;
  /// Clock ticks since boot, wherever there is a pid.
  uint64_t start_time = 0;
  /// crun: the path below every hierarchy. Empty: none.
  std::string cgroup_path;
  /// runc: the directories themselves.
  std::vector<std::string> cgroup_directories;
  /// Only the runtime itself can take the container apart (a systemd scope,
  /// resctrl groups).
  bool needs_runtime = false;
};

/// Reads the state directory. Blocks: for files.
/// Source: crun 1.21, src/libcrun/status.c; runc 1.1.15, libcontainer/state_linux.go.
RuntimeState ReadState(const std::string& directory);

/// The last error in a log of JSON lines; without one the last line's text.
/// Source: runc(8), crun(1), `--log-format json`.
std::string LastLogError(const std::string& log);

/// What criu's log, `dump.log` or `restore.log`, says went wrong first. Empty: nothing.
/// Source: criu 4.1, "(SECONDS) Error (FILE:LINE): TEXT".
std::string FirstCriuError(const std::string& log);

}  // namespace gantry::runc
