// SPDX-License-Identifier: Apache-2.0
//
// The OCI hooks of a container that are run on the host, for a backend whose OCI runtime does not
// run them: it says at which point of the container's life it stands.
//
// - prestart, then createRuntime: in Create, when the container's namespaces are there.
// - poststart: in Start. poststop: last in Delete, also of one that could not be made.
//
// Those of createContainer and startContainer belong inside, where a backend alone can run them.
//
// Source: opencontainers/runtime-spec 1.2, runtime.md (lifecycle).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/hooks/hook.h"

namespace gantry::hooks {

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
  /// Those that are not run here.
  InsideHooks inside() const;
  /// In an engine after the one that has made the container: takes up what that one was waiting
  /// for.
  void Recover();

  /// Those of Create. Errors: of the first that fails; then no more are run. `pid`: the one that
  /// stands for the container.
  Status Create(HostPid pid);
  /// Those of Start, when the container runs. Again, also after a restart of the engine: those that
  /// have not ended well yet. Errors: of the first that fails; then no more are run, and the
  /// container is to be stopped.
  Status Start(HostPid pid);
  /// Of a container that runs: its Start was cut short before all of those were run.
  bool IsStarting() const;
  /// Those of Delete, each once, also over a restart of the engine; a failure is logged.
  void Delete();

 private:
  /// Hooks of which it is counted, in a file in the bundle, how many have been run.
  enum class Counted { kStart, kStop };

  std::string TagOf(std::string_view what) const;
  std::string State(std::string_view status, HostPid pid) const;
  /// `left`: it runs already; null: it does not.
  Status Run(const Hook& hook, const std::string& state, const std::string& tag,
             std::shared_ptr<HostProcess> left) const;
  std::string CountPath(Counted which) const;
  std::string TagOf(Counted which, size_t index) const;
  /// None: there is no such file.
  std::optional<size_t> CountOf(Counted which) const;
  void SetCount(Counted which, size_t count) const;

  const ContainerId id_;
  const std::string bundle_;
  SandboxContext& context_;
  Hooks hooks_;
  /// JSON.
  std::string annotations_ = "{}";
  /// What an engine before this one has started: in Create, in Start, and in Delete.
  std::shared_ptr<HostProcess> left_;
  std::shared_ptr<HostProcess> left_start_;
  std::shared_ptr<HostProcess> left_stop_;
};

}  // namespace gantry::hooks
