// SPDX-License-Identifier: Apache-2.0
//
// The VMs that wait for pods of handlers with the option `template`, and the templates that they
// are restored from: a `ProcessPool` whose thread is the one maker of both.
//
//   DIRECTORY/templates    the templates (template_store.h)
//   DIRECTORY/ready-NAME   the files of a VM that waits, as a pod's; `pool` in it leads to its
//                          entry in the pool's folder: where that is gone, nobody needs it
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/pool/process_pool.h>

#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/machine/ready_vms.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

struct TemplateHandler {
  std::string name;
  VmmOptions options;
};

/// What engines before this one have left in a directory for VMs: of those that waited all, and all
/// templates where no handler of this one has any. Blocks: briefly, on files.
void RemoveLeftReadyVms(const std::string& directory);
void RemoveTemplates(const std::string& directory);

/// Thread: any.
class ReadyPool final : public ReadyVms {
 public:
  /// Begins at once. `handlers`: each with `templates` above 0. `context`, the backend's own, and
  /// `means` outlive it.
  ReadyPool(SandboxContext& context, const MachineMeans& means,
            std::vector<TemplateHandler> handlers, PoolTimes times = {});
  ~ReadyPool() override = default;

  std::shared_ptr<void> Starting() override;
  Result<ReadyVm> Take(SandboxContext& context, const MachineRequest& request,
                       Accelerator accelerator, Deadline deadline) override;
  void Report(const std::string& handler, bool of_use) override;

  std::vector<BackendCount> Counts() const { return pool_->Counts(); }

  /// Ends all that wait, without waiting for that. No other is made.
  void Leave();

  ProcessPool& pool_for_test() { return *pool_; }

 private:
  Result<std::unique_ptr<PooledProcess>> Make(size_t handler, const std::string& folder,
                                              const PoolMaker::Spawned& spawned);
  Result<std::string> Build(size_t handler) const;
  /// Of the template, made where it is not there.
  Result<std::string> TemplateFor(SandboxContext& context, const MachineRequest& request,
                                  Accelerator accelerator, const std::string& key);
  /// Of all handlers whose VMs lie there; none: that is not known of each of them now.
  Result<std::vector<std::string>> KeysIn(const std::string& directory) const;

  SandboxContext& context_;
  const MachineMeans& means_;
  const std::vector<TemplateHandler> handlers_;
  /// Directories that were looked through for what engines before have left. The pool's thread's.
  std::set<std::string> swept_;
  /// Last: its thread uses all else.
  std::unique_ptr<ProcessPool> pool_;
};

}  // namespace gantry::vmm
