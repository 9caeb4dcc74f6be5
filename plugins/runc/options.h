// SPDX-License-Identifier: Apache-2.0
//
// What a handler or a request may set for this backend. The keys are those of
// containerd's runc shim, so that a node moves over by changing its
// runtime_type.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/remove.h>

namespace gantry::runc {

/// Thread: any; plain data.
struct Options {
  /// `BinaryName`: absolute, or a name looked up in PATH. Empty: the first of
  /// crun and runc that is installed and can work on this node.
  std::string binary_name;
  /// `Root`: the OCI runtime's state; the containerd namespace is put below it.
  std::string root = "/run/containerd/runc";
  /// `CriuPath`: criu where it is not in PATH.
  std::string criu_path;
  /// `CriuImagePath`: where checkpoints go when the request names no path.
  std::string criu_image_path;
  /// `CriuWorkPath`: criu's logs when the request names no path.
  std::string criu_work_path;
  /// `ShimCgroup`: accepted and without effect, there is no shim per container.
  std::string shim_cgroup;
  bool no_pivot_root = false;
  bool no_new_keyring = false;
  /// `SystemdCgroup`. Without it a container is put into a scope of systemd's, too, where its
  /// `cgroupsPath` names one and systemd runs.
  bool systemd_cgroup = false;
  /// `SealBinary`: run crun and runc from a sealed copy in memory, which saves
  /// them an execution; see sealed_binary.h.
  bool seal_binary = true;
  /// `IoUid`, `IoGid`: owner of the fifos given to the container; 0: as they are.
  uint32_t io_uid = 0;
  uint32_t io_gid = 0;
  /// `TimeoutMs`: how long one run of the OCI runtime may take, where the core's
  /// own limit for the call is not shorter. None: only that.
  std::optional<std::chrono::milliseconds> timeout;
  /// `DeleteTimeoutMs`: the same for a delete, after which the kernel does it.
  std::chrono::milliseconds delete_timeout = std::chrono::seconds(10);
  /// Directories in which programs are looked up; the engine's own PATH.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  /// Is there where systemd runs. Source: sd_booted(3).
  std::string systemd_directory = "/run/systemd/system";
};

/// The defaults, with the engine's PATH.
Options DefaultOptions();

/// `base` with what `json` sets; empty text sets nothing. Unknown keys are put
/// into `unknown`; without `unknown` they are an error.
/// Errors: kInvalidArgument naming the key.
Result<Options> ParseOptions(const std::string& json, Options base,
                             std::vector<std::string>* unknown);

/// Why a run of `binary` would make no container on this node, and what to do; empty: nothing
/// speaks against it. Told by its name, `crun` or `crun-...`: crun refuses to work where cgroup v2
/// lies beside v1 and has controllers of its own.
/// Source: crun 1.21, src/libcrun/cgroup.c, libcrun_cgroup_enter; the same in 0.8.
std::string WhyItCannotRun(const std::string& binary, const cgroup::NodeCgroups& node);

/// What to do on a node that crun refuses.
std::string HybridRemedy(const cgroup::NodeCgroups& node);

/// The OCI runtime's binary. One that is named, or the only one, is given even where it cannot
/// work: what it says itself is the truth. Errors: kFailedPrecondition, saying what to install.
/// Blocks: for files.
Result<std::string> FindRuntime(const Options& options,
                                const cgroup::NodeCgroups& node = cgroup::NodeCgroups::At());
/// criu. Errors: kFailedPrecondition, saying what to install.
Result<std::string> FindCriu(const Options& options);
/// The PATH with which programs are run: criu's directory first, if it is named.
std::string SearchPath(const Options& options);

}  // namespace gantry::runc
