// SPDX-License-Identifier: Apache-2.0
//
// The one interface between the core and a kind of sandbox. One object per
// backend and engine; it makes sandboxes and finds them again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/sandbox.h>

namespace gantry {

/// Something a backend needs of the node, for `gantryctl doctor`.
struct NodeNeed {
  std::string what;
  bool met = false;
  /// Only some calls need it; `what` says which.
  bool optional = false;
  /// Where it was found, or how to get it.
  std::string detail;
};

/// A handler of the configuration that is run by the backend.
struct BackendHandler {
  std::string name;
  /// The options that it has there, a JSON object, without those that come with a request.
  std::string options_json;
};

/// A number for `gantryctl status`.
struct BackendCount {
  /// The handler that it is about; empty: the backend as a whole.
  std::string handler;
  /// A word: `warm_ready`.
  std::string name;
  uint64_t value = 0;
};

/// For whom `SandboxBackend::Features` is asked.
struct FeaturesRequest {
  /// The handler's options, and on top those that containerd has for the runtime: a JSON object.
  std::string options_json;
  /// A directory of root's alone in which the backend may keep what it has found out, for
  /// the next time: a few small files. It goes when the node restarts. Empty: there is none.
  std::string keep_dir;
};

struct BackendInfo {
  std::string name;
  std::string version;
  /// Can run pods without a pause container.
  bool pauseless_pods = false;
  std::vector<NodeNeed> needs;
};

/// Implemented by a backend. Thread: workers, any number of calls at a time.
class SandboxBackend {
 public:
  SandboxBackend(const SandboxBackend&) = delete;
  SandboxBackend& operator=(const SandboxBackend&) = delete;
  virtual ~SandboxBackend() = default;

  /// What it is and what it finds on this node.
  virtual BackendInfo Describe() = 0;

  /// Checks a handler's options when the backend is loaded, before `Attach`, and for
  /// `gantryctl check` and `doctor`; from `Attach` on those that come with a request, on top
  /// of its handler's, before `CreateSandbox`. No sandbox is made with what it refuses. Again:
  /// options that it took are not asked for again; of a handler, kFailedPrecondition is.
  /// Errors: kInvalidArgument naming the key in single quotes, as 'outer.inner' where it
  /// is nested: the core puts the key's place in the file in front;
  /// kFailedPrecondition for what the options ask of the node in vain.
  virtual Status CheckOptions([[maybe_unused]] const std::string& options_json) { return {}; }

  /// What containers with these options can have: a features document of the OCI runtime
  /// spec, which containerd passes on. By it the kubelet starts recursive read-only mounts
  /// ("rro" in `mountOptions`), and containerd mounts with id mappings and pods with a user
  /// namespace (`linux.mountExtensions.idmap.enabled`). What is not in it is not promised;
  /// with an empty text nothing is. Called by the shim's `-info` in a process of its own that
  /// ends afterwards, after neither `CheckOptions` nor `Attach`. Errors: why it cannot be
  /// told: then nothing is promised. Blocks: up to 3 s.
  /// Source: runtime-spec 1.2, features.md; containerd 2.3.4, internal/cri/server/service.go.
  virtual Result<std::string> Features([[maybe_unused]] const FeaturesRequest& request) {
    return std::string();
  }

  /// Once, after the backend was loaded by an engine; never by gantryctl. `context`, which
  /// lives as long as the backend, is of no sandbox: what is spawned by it is the backend's own
  /// until a sandbox of its takes it over, which is when the sandbox has saved what it needs
  /// to `Recover` it. The engine after this one kills what no sandbox has recovered. It stores,
  /// saves and binds nothing. `handlers`: all of the configuration's that name this backend.
  /// Blocks: briefly; what takes longer is for a thread of the backend's.
  virtual void Attach([[maybe_unused]] SandboxContext& context,
                      [[maybe_unused]] const std::vector<BackendHandler>& handlers) {}

  /// The engine ends, be it that another one takes its place or that its keeper is gone: of
  /// what the backend has for itself, no sandbox's, nothing should stay. Calls of other threads
  /// may be under way. Thread: the engine's main one, which waits for nobody any more: no call
  /// of a context. Blocks: for some milliseconds. Not called where an engine is killed.
  virtual void Leave() {}

  /// What is to be shown of it. Blocks: never.
  virtual std::vector<BackendCount> Counts() { return {}; }

  /// Makes a sandbox; nothing runs before its `Start`.
  virtual Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                         SandboxContext& context) = 0;
  /// The sandbox as it was before a restart of the engine. `blob`: what was
  /// last saved. Its containers are recovered one by one afterwards. Again: after
  /// kResourceExhausted, as are `RecoverContainer` and `RecoverExec`.
  virtual Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                          SandboxContext& context,
                                                          const std::string& blob) = 0;

 protected:
  SandboxBackend() = default;
};

}  // namespace gantry
