// SPDX-License-Identifier: Apache-2.0
//
// VMs that need no boot: restored from a template, with an agent that has said hello, and paused.
// The room `template` makes them; here is what a machine takes one by.
#pragma once

#include <memory>
#include <string>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/agent/greet.h"
#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/machine/machine.h"

namespace gantry::vmm {

struct ReadyVm {
  /// Where its files are.
  MachineDirectory directory{std::string()};
  MachineUser user;
  std::shared_ptr<HostProcess> vmm;
  std::shared_ptr<HostProcess> vsock;
  Greeted agent;
  /// Of the handler for whose pods it has waited; empty: it was restored for this pod, by its
  /// context, in its cgroups and its directory.
  std::string handler;
};

/// Kills its processes and removes its files. Errors: kDeadlineExceeded: the kernel has not ended a
/// process yet. Blocks: for the kills.
Status EndReadyVm(const VmmOptions& options, const ReadyVm& vm);

/// Thread: any.
class ReadyVms {
 public:
  ReadyVms(const ReadyVms&) = delete;
  ReadyVms& operator=(const ReadyVms&) = delete;
  virtual ~ReadyVms() = default;

  /// As long as it is kept a machine is being started, and those that start have the node for
  /// themselves.
  virtual std::shared_ptr<void> Starting() = 0;
  /// One that is what `request`, as `Settle` leaves it, would be booted to; it is the caller's from
  /// then on. Errors: kNotFound: there is none, and why; what the restoring fails with. Blocks: up
  /// to `deadline`.
  virtual Result<ReadyVm> Take(SandboxContext& context, const MachineRequest& request,
                               Accelerator accelerator, Deadline deadline) = 0;
  /// What has become of one of a handler's.
  virtual void Report(const std::string& handler, bool of_use) = 0;

 protected:
  ReadyVms() = default;
};

}  // namespace gantry::vmm
