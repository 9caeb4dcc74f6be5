// SPDX-License-Identifier: Apache-2.0
//
// The OCI hooks of a container, at the points of its life where they belong:
//
// - prestart, then createRuntime: when its sentry is up, in Create. The network namespace of the
//   container is the sentry's (`/proc/PID/ns/net` of the state's pid), is there by then, and is
//   read when the container is started: what they put into it the sentry gets.
// - createContainer: the gofer runs them itself before it serves a file, of releases since
//   2026-05, where a gofer serves the root.
// - startContainer: would be programs of the container, which nobody runs.
// - poststart: in Start. poststop: last in Delete, also of one that could not be made.
//
// Source: opencontainers/runtime-spec 1.2, runtime.md (lifecycle); runsc 2026-09,
// runsc/container/container.go, runsc/specutils/hooks.go, runsc/cmd/sandboxsetup/gofer_mount.go.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>

#include "plugins/gvisor/hook.h"

namespace gantry::gvisor {

/// Thread: workers, one call at a time. Blocks: as long as hooks run.
class ContainerHooks {
 public:
  /// Lives no longer than `context`.
  ContainerHooks(ContainerId id, std::string bundle, SandboxContext& context)
      : id_(std::move(id)), bundle_(std::move(bundle)), context_(context) {}

  /// To be called first. Errors: as `ReadHooks`.
  Status Read(const std::string& spec_json);
  /// The container is being made: those of Delete are to be run, whatever was in the bundle before.
  Status Begin();
  /// Says in the log which are never run. `gofer`: its gofer runs those of createContainer.
  void SayWhatIsLeftOut(bool gofer) const;
  /// In an engine after the one that has made the container: takes up what that one was waiting
  /// for.
  void Recover();

  /// Those of Create. Errors: of the first that fails; then no more are run. `pid`: the sentry's.
  Status Create(HostPid pid);
  /// Those of Start, when the container runs. Errors: of the first that fails; then no more are
  /// run, and the container is to be stopped.
  Status Start(HostPid pid);
  /// Those of Delete, each once, also over a restart of the engine; a failure is logged.
  void Delete();

 private:
  std::string TagOf(std::string_view what) const;
  std::string State(std::string_view status, HostPid pid) const;
  Status Run(const Hook& hook, const std::string& state) const;
  Status RunStop(size_t index);

  std::string StoppedPath() const { return bundle_ + "/poststop"; }

  /// How many of poststop have been run.
  size_t Stopped() const;

  const ContainerId id_;
  const std::string bundle_;
  SandboxContext& context_;
  Hooks hooks_;
  /// JSON.
  std::string annotations_ = "{}";
  /// What an engine before this one has started: in Create or Start, and in Delete.
  std::shared_ptr<HostProcess> left_;
  std::shared_ptr<HostProcess> left_stop_;
};

}  // namespace gantry::gvisor
