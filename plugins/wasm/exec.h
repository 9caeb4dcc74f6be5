// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/toolkit/init/gated_process.h>

#include "plugins/wasm/launch.h"

namespace gantry::wasm {

/// A process more in a container: another module or function of its root, or a program.
/// Thread: workers, as `Process`.
class WasmExec final : public Process {
 public:
  /// `init`: the container's, which runs. Owner: the contexts are borrowed and outlive it.
  WasmExec(std::shared_ptr<const Launcher> launcher, const ExecRequest& request,
           SandboxContext& sandbox, ProcessContext& context, std::shared_ptr<HostProcess> init);

  /// It is made only now: until then nothing of it is there.
  Status Start() override;
  Status Delete() override;

  /// Of one whose Start had been called: it may wait at its gate, and its Start not come again.
  /// Errors: kAborted: it never was made.
  Status Recover();

 private:
  const std::shared_ptr<const Launcher> launcher_;
  const ExecRequest request_;
  const std::shared_ptr<HostProcess> init_;
  GatedProcess process_;
};

}  // namespace gantry::wasm
