// SPDX-License-Identifier: Apache-2.0
//
// A VM that is being made, and is nobody's yet: one that a template is to be made of, or one that
// is restored from it. It ends with this object, and nothing is left of it, unless it is released.
#pragma once

#include <memory>
#include <string>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/machine/ready_vms.h"

namespace gantry::vmm {

/// Thread: one. All that it is given outlives it.
class NewVm {
 public:
  /// `request`: as `Settle` leaves it; its directory is where the VM's files are, its cgroups what
  /// its processes are born in.
  NewVm(SandboxContext& context, const MachineMeans& means, const MachineRequest& request,
        Accelerator accelerator)
      : context_(context), means_(means), request_(request), accelerator_(accelerator) {}

  NewVm(const NewVm&) = delete;
  NewVm& operator=(const NewVm&) = delete;
  ~NewVm();

  /// A user, and a directory for it.
  Status MakePlace();
  /// Its processes run, and its VMM answers. `snapshot`: where it is to be restored from; empty: it
  /// boots, and has no vsock. `writes_to`: where its VMM is to write a snapshot; empty: it writes
  /// none. Blocks: up to `deadline`.
  Status Run(const std::string& snapshot, const std::string& writes_to, Deadline deadline);

  Hypervisor& hypervisor() { return *hypervisor_; }

  ReadyVm& vm() { return vm_; }

  /// Why its VMM has ended, now that it has.
  Error Ended() const;
  /// `error` with what the VMM said, where it said something.
  Error WithWords(Error error) const;

  ReadyVm Release();

 private:
  SandboxContext& context_;
  const MachineMeans& means_;
  const MachineRequest& request_;
  const Accelerator accelerator_;
  ReadyVm vm_;
  std::unique_ptr<Hypervisor> hypervisor_;
  bool is_mine_ = false;
};

}  // namespace gantry::vmm
