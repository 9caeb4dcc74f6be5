// SPDX-License-Identifier: Apache-2.0
//
// A sandbox: what one or several containers run in. A pod, or the implied
// sandbox of a container that stands alone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/metrics.h>
#include <gantry/pod_config.h>

namespace gantry {

enum class SandboxKind {
  /// Made for one container that stands alone.
  kImplied,
  /// A pod whose pause container is its first container.
  kPaused,
  /// A pod without a pause container.
  kPauseless,
};

/// Everything a backend is told about a sandbox to create.
struct SandboxRequest {
  SandboxId id;
  Namespace ns;
  SandboxKind kind = SandboxKind::kImplied;
  /// Absolute path of the workspace. For an implied or paused sandbox that of
  /// its first container.
  std::string bundle;
  /// The handler's options of the configuration, overridden by those that came
  /// with the request, as a JSON object.
  std::string options_json;
  /// Network namespace that is already set up; empty: the host's or none.
  std::string netns_path;
  std::map<std::string, std::string> annotations;
  /// `runtime.v1.PodSandboxConfig` as CRI sent it; kPauseless only. See
  /// gantry/pod_config.h.
  std::string pod_config;
  /// What the processes of such a sandbox itself are to be born in, for
  /// `SpawnRequest::cgroups`: a cgroup inside the pod's, made and removed by the
  /// core. Empty: the pod has none.
  std::vector<std::string> cgroups;
  /// The socket for gRPC of the containerd that the sandbox is of, an absolute path, for a backend
  /// that has something to ask it; a node may have several containerds. Empty: it has not said.
  std::string containerd_address;
};

/// What a verbose status shows of a sandbox beside its state, pid and times,
/// which the core knows.
using SandboxInfo = std::map<std::string, std::string>;

/// Where containers of a sandbox run. Source: containerd types/platform.proto.
struct SandboxPlatform {
  std::string os = "linux";
  std::string architecture;
  std::string variant;
};

/// Implemented by a backend. Thread: workers, one call at a time, calls on its
/// containers apart from that.
class Sandbox {
 public:
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  virtual ~Sandbox() = default;

  /// Brings it up. For an implied or paused sandbox it is called before the
  /// first container is created. A pauseless one is bound, or its pid said, when
  /// this returns (`SandboxContext::Bind`, `SetPid`). On failure nothing runs.
  /// It comes again after a failure, and after RecoverSandbox when the engine died in
  /// it: what it had bound is dead by then, and what it saved is what it was before.
  virtual Status Start() { return {}; }

  /// Ends a pauseless sandbox within `limit`, politely first. Its containers have
  /// ended. Again: allowed.
  virtual Status Stop([[maybe_unused]] std::chrono::milliseconds limit) { return {}; }

  virtual Result<SandboxInfo> Info() { return SandboxInfo(); }

  /// Of all in the sandbox. Left out: the core reads those of the pod's cgroup.
  virtual Result<ContainerMetrics> Metrics() {
    return Fail(Code::kUnimplemented, "metrics: not implemented by this backend");
  }

  virtual SandboxPlatform Platform() { return {}; }

  /// New limits of the pod as a whole. Left out: the core writes them into the
  /// pod's cgroup.
  virtual Status Update([[maybe_unused]] const PodResources& resources) {
    return Fail(Code::kUnimplemented, "update: not implemented by this backend");
  }

  /// Makes a container that waits for its Start. On failure nothing of it is
  /// left. `context` outlives the returned object.
  virtual Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                             ContainerContext& context) = 0;
  /// A container that `CreateContainer` had made, or had begun to make, before
  /// a restart of the engine. `blob` is what was last saved, empty when nothing
  /// was. Binds its init or says how it ended. Errors: kAborted when its
  /// creation was never finished and nothing is left of it: no handle is there whose `Delete`
  /// could be called, so the backend removes what it had made first. The core undoes its own
  /// part and, where its caller still waits, creates it anew. Others: its host process keeps its
  /// exit, and its calls answer UNAVAILABLE.
  virtual Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                              ContainerContext& context,
                                                              const std::string& blob) = 0;

  /// Ends it and removes every trace. Again: allowed.
  virtual Status Shutdown() { return {}; }

 protected:
  Sandbox() = default;
};

}  // namespace gantry
