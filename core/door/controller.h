// SPDX-License-Identifier: Apache-2.0
//
// containerd's sandbox controller (containerd.services.sandbox.v1.Controller), which containerd 2.0
// and later calls over gRPC where `[proxy_plugins.NAME] type = "sandbox"` is configured.
//
// It does for a pod what the shim does: makes the bundle, announces the instance to the keeper, and
// calls the Sandbox service on the instance's socket. The same socket is what it tells containerd
// as the address of the Task service. So the engine knows nothing of controllers, and a pod that
// came by one is like any other.
//
// containerd's order: Create, Start, Wait (open for the pod's life), Status whenever a container is
// made, Stop, Shutdown. A Create or Start that fails is undone here, since containerd shuts down
// only what has started.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/door/folders.h"
#include "core/door/sandboxes.h"
#include "core/link/control_messages.h"
#include "core/rpc/method_table.h"
#include "proto/containerd/controller.pb.h"

namespace gantry::door {

namespace controller_pb = containerd::services::sandbox::v1;

/// Where things are on this node.
struct Places {
  /// The keeper's.
  std::string run_dir;
  /// containerd's sockets: the first is what it calls itself to its shims.
  std::string containerd;
  std::string containerd_ttrpc;
};

/// Which handler a runtime's name means: "" for io.containerd.gantry.v1, "wasm" for
/// io.containerd.gantry-wasm.v1, and for the path of such a shim. Errors: kInvalidArgument for what
/// is none of gantry's.
Result<std::string> HandlerOfRuntime(const std::string& runtime);

/// Thread: loop.
class Controller {
 public:
  /// All outlive it.
  Controller(async::Loop& loop, async::WorkerPool& pool, const Folders& folders, Places places);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller() = default;

  /// Puts the methods into `table`, which it outlives.
  Status Register(rpc::MethodTable& table);

  /// Undoes what a program before this one was making, since its caller was told that it has
  /// failed; and ends what is left of sandboxes whose keeper has ended.
  /// `left`: all that there were before the first call.
  async::Task<void> Recover(std::vector<Folders::Left> left);

 private:
  using Call = rpc::CallContext;
  template <class T>
  using Answer = async::Task<Result<T>>;

  Answer<controller_pb::ControllerCreateResponse> Create(
      const Call& call, controller_pb::ControllerCreateRequest request);
  Answer<controller_pb::ControllerStartResponse> Start(
      const Call& call, controller_pb::ControllerStartRequest request);
  Answer<controller_pb::ControllerPlatformResponse> Platform(
      const Call& call, controller_pb::ControllerPlatformRequest request);
  Answer<controller_pb::ControllerStopResponse> Stop(const Call& call,
                                                     controller_pb::ControllerStopRequest request);
  Answer<controller_pb::ControllerWaitResponse> Wait(const Call& call,
                                                     controller_pb::ControllerWaitRequest request);
  Answer<controller_pb::ControllerStatusResponse> GetStatus(
      const Call& call, controller_pb::ControllerStatusRequest request);
  Answer<controller_pb::ControllerShutdownResponse> Shutdown(
      const Call& call, controller_pb::ControllerShutdownRequest request);
  Answer<controller_pb::ControllerMetricsResponse> Metrics(
      const Call& call, controller_pb::ControllerMetricsRequest request);
  Answer<controller_pb::ControllerUpdateResponse> Update(
      const Call& call, controller_pb::ControllerUpdateRequest request);

  /// With what a sandbox is called: as the controller was.
  struct Terms {
    std::chrono::nanoseconds timeout{0};
    /// Which trace the call belongs to.
    rpc::Metadata trace;
  };

  static Terms TermsOf(const Call& call);

  /// Calls `method` of the sandbox's own service.
  template <class Response, class Request>
  Answer<Response> Ask(SandboxKey key, const char* method, Request request, Terms terms);

  link::Announce AnnounceOf(const SandboxKey& key) const;
  async::Task<Status> MakeSandbox(SandboxKey key, link::Announce instance,
                                  controller_pb::ControllerCreateRequest request, Terms terms);
  async::Task<Status> SetStage(SandboxKey key, Stage stage);
  /// Ends what there is of it and forgets it. Again: nothing.
  async::Task<Status> Discard(SandboxKey key);
  /// The same after an error, which counts more than another one.
  async::Task<void> Undo(SandboxKey key, std::string_view what);

  async::Loop& loop_;
  async::WorkerPool& pool_;
  const Folders& folders_;
  const Places places_;
  Sandboxes sandboxes_;
};

}  // namespace gantry::door
