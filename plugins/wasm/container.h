// SPDX-License-Identifier: Apache-2.0
//
// A container whose init is a process of the host's, made by gantry-init or gantry-wasm, which
// waits at its gate until its Start. Signals, exits, pause, limits, statistics and OOM are the
// core's, by the process and its cgroups.
#pragma once

#include <chrono>
#include <memory>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/init/gated_process.h>

#include "plugins/wasm/launch.h"

namespace gantry::wasm {

/// So long is the end of a process waited for that was killed.
inline constexpr std::chrono::seconds kEndLimit{5};

/// Thread: workers, as `Container`. Owner: the contexts are borrowed and outlive it.
class WasmContainer final : public Container {
 public:
  WasmContainer(std::shared_ptr<const Launcher> launcher, SandboxContext& sandbox,
                ContainerContext& context);

  /// Makes it; it waits. Errors, after which nothing of it is left: as `Launcher::Init`,
  /// `GatedProcess::Make`, those of hooks; kUnimplemented: a checkpoint to restore.
  Status Create();
  /// After a restart of the engine. Errors: kAborted: it never was made.
  Status Recover();

  Result<bool> HasStarted() override { return init_.IsOpen(); }

  Status Start() override;
  Status Delete() override;
  Status Checkpoint(const CheckpointRequest& request) override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;

 private:
  Status Make();

  const std::shared_ptr<const Launcher> launcher_;
  SandboxContext& sandbox_;
  ContainerContext& context_;
  GatedProcess init_;
};

}  // namespace gantry::wasm
