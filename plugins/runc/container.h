// SPDX-License-Identifier: Apache-2.0
//
// A container made by an OCI runtime. The runtime is run to create it, to exec
// in it, to checkpoint it, and to delete it by force; all else is done by way of
// the kernel, here or, where this class leaves a call out, in the core.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>

#include "plugins/runc/criu.h"
#include "plugins/runc/documents.h"
#include "plugins/runc/exec.h"
#include "plugins/runc/oci_command.h"
#include "plugins/runc/teardown.h"

namespace gantry::runc {

/// Thread: workers, one call at a time.
class RuncContainer : public Container {
 public:
  RuncContainer(const ContainerRequest& request, ContainerContext& context, OciCommand command,
                SandboxContext& sandbox);

  /// Makes the container, which then waits for `Start`; one to be restored is
  /// made there. On failure nothing is left. Errors: kAlreadyExists: the
  /// runtime has a live container of that id, somebody else's; kInvalidArgument for a
  /// spec that is none.
  Status Create(const std::string& spec_json);
  /// Takes the container up after a restart of the engine. `blob`: what this
  /// class saved, or empty. Errors: kAborted: it was never finished, and what
  /// there was of it has been removed.
  Status Recover(const std::string& blob);

  Result<bool> HasStarted() override;
  Status Start() override;
  Status Delete() override;
  Status Checkpoint(const CheckpointRequest& request) override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;

 private:
  bool restores() const { return !checkpoint_.empty(); }

  std::string Tag() const;

  std::string StateDirectory() const { return command_.StateDirectory(remains_.id); }

  std::string FifoPath() const { return StateDirectory() + "/exec.fifo"; }

  std::string CriuConfigPath() const { return remains_.bundle + "/criu.conf"; }

  ExecPlace Place() const;
  /// An OCI runtime that cannot map mounts leaves the mappings out, and says nothing.
  Status CheckMounts() const;
  Status ChooseCgroupManager();
  Status ClearStale();
  Status LaunchInit(std::string verb, std::vector<std::string> args,
                    std::vector<std::string> env = {}, const StreamNames& saved = {});
  Status Restore();
  /// What is kept of a release, in the sandbox's store.
  std::string ReaderName() const;
  Status Release();
  Status RunStart();
  /// Keeps the bound init, and points the core to its cgroups.
  Status Take(std::shared_ptr<HostProcess> init);
  Status SaveState();
  Status RecoverSaved(const std::string& blob);
  Status RecoverUnsaved();
  Status AbortRecovery(const std::string& reason);

  Remains remains_;
  bool terminal_;
  std::string checkpoint_;
  OciCommand command_;
  ContainerContext* context_;
  SandboxContext* sandbox_;
  std::shared_ptr<HostProcess> init_;
  bool recovered_ = false;
};

}  // namespace gantry::runc
