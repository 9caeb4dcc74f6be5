// SPDX-License-Identifier: Apache-2.0
//
// A sandbox: what one or several containers run in. A pod, or the implied
// sandbox of a container that stands alone.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>

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
  /// `runtime.v1.PodSandboxConfig` as CRI sent it; kPauseless only.
  std::string pod_config;
};

struct SandboxStatus {
  /// A host process that holds the sandbox's namespaces, if there is one.
  HostPid pid;
  bool ready = false;
  /// Shown by verbose status.
  std::map<std::string, std::string> info;
};

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
  /// first container is created.
  virtual Status Start() { return {}; }

  /// Ends everything inside within `limit`, politely first.
  virtual Status Stop([[maybe_unused]] std::chrono::milliseconds limit) { return {}; }

  virtual Result<SandboxStatus> CurrentStatus() { return SandboxStatus{HostPid{}, true, {}}; }

  virtual Result<AnyValue> Metrics() {
    return Fail(Code::kUnimplemented, "metrics: not implemented by this backend");
  }

  virtual SandboxPlatform Platform() { return {}; }

  virtual Status Update([[maybe_unused]] const std::string& resources_json) {
    return Fail(Code::kUnimplemented, "update: not implemented by this backend");
  }

  /// Makes a container that waits for its Start. On failure nothing of it is
  /// left. `context` outlives the returned object.
  virtual Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                             ContainerContext& context) = 0;
  /// A container that `CreateContainer` had made, or had begun to make, before
  /// a restart of the engine. `blob` is what was last saved, empty when nothing
  /// was. Binds its init or says how it ended. Errors: kAborted when it was
  /// never finished; the core then calls `Delete` of a fresh handle: so a
  /// backend answers kAborted only when nothing is left of it.
  virtual Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                              ContainerContext& context,
                                                              const std::string& blob) = 0;

  /// Ends it and removes every trace. Again: allowed.
  virtual Status Shutdown() { return {}; }

 protected:
  Sandbox() = default;
};

}  // namespace gantry
