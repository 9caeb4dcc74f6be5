// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>

#include "tests/contract/remote/process.h"

namespace gantry::remote {

class RemoteExec final : public Process {
 public:
  RemoteExec(const ExecRequest& request, ProcessContext& context,
             std::shared_ptr<SandboxParts> parts)
      : request_(request), process_(context, nullptr, std::move(parts)) {}

  Status Recover() { return process_.Recover(request_.saved); }

  Status Start() override;

  Status Kill(uint32_t signal) override { return process_.Kill(signal); }

  Status ConsoleSignal(uint32_t signal) override { return process_.ConsoleSignal(signal); }

  Status Delete() override { return process_.Delete(); }

 private:
  const ExecRequest request_;
  RemoteProcess process_;
};

/// Checkpoint is left out: the core answers UNIMPLEMENTED.
class RemoteContainer final : public Container {
 public:
  RemoteContainer(const ContainerId& id, ContainerContext& context,
                  std::shared_ptr<SandboxParts> parts)
      : id_(id),
        context_(context),
        parts_(parts),
        init_(context.init(), &context, std::move(parts)) {}

  Status Create(const ContainerRequest& request);

  Status Recover(const ContainerRequest& request);

  Status Start() override;
  Result<bool> HasStarted() override;

  Status Kill(uint32_t signal) override { return init_.Kill(signal); }

  Status ConsoleSignal(uint32_t signal) override { return init_.ConsoleSignal(signal); }

  Status KillAll(uint32_t signal) override;

  Status Pause() override { return Do("pause"); }

  Status Resume() override { return Do("resume"); }

  Status Update(const std::string& resources_json) override;
  Result<ContainerMetrics> Stats() override;
  Result<std::vector<ProcessInfo>> Processes() override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;

  Status Delete() override;

 private:
  Status Do(const char* what);
  /// Those of a container are all run on the host, where the sandbox is for its processes.
  Status RunHooks(HookPoint point);

  const ContainerId id_;
  ContainerContext& context_;
  const std::shared_ptr<SandboxParts> parts_;
  RemoteProcess init_;
};

}  // namespace gantry::remote
