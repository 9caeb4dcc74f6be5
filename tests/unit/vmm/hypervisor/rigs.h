// SPDX-License-Identifier: Apache-2.0
//
// A driver and the double of its VMM, joined as keeper and VMM would join them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "tests/vmm_doubles/cloud_hypervisor_double.h"
#include "tests/vmm_doubles/firecracker_double.h"
#include "tests/vmm_doubles/qemu_double.h"

namespace gantry::vmm {

/// No test waits longer for what comes.
inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

/// For what never comes.
inline Deadline AtOnce() {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
}

/// A VM that all of them have.
VmConfig SmallVm();

/// A descriptor of nothing in particular, in place of a tap.
UniqueFd SomeFd();

/// The control socket's listener, out of what the keeper would give to the VMM.
UniqueFd ListenerOf(SpawnRequest& request);

/// Requests, their temporary folder called DIR.
std::string Recorded(const std::vector<std::string>& requests, const std::string& folder);
/// What lies in golden/NAME; with GANTRY_WRITE_GOLDEN in the environment it is written instead.
void ExpectGolden(const std::string& name, const std::string& recorded);

class Rig {
 public:
  Rig() = default;
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  virtual ~Rig() = default;

  virtual Hypervisor& vm() = 0;
  /// Ids of devices that the VMM has by our doing.
  virtual std::set<std::string> Devices() const = 0;
  virtual std::vector<std::string> Requests() const = 0;
  /// The VMM does not answer the next request to pause.
  virtual void HangNextPause() = 0;
  /// It leaves instead of answering that.
  virtual void DropNextPause() = 0;
  virtual void GarbageForNextPause() = 0;

  const std::string& folder() const { return folder_.path(); }

 protected:
  os::TempDir folder_ = os::TempDir::Create().value();
};

std::unique_ptr<Rig> QemuRig(VmConfig config);
std::unique_ptr<Rig> CloudHypervisorRig(VmConfig config);
std::unique_ptr<Rig> FirecrackerRig(VmConfig config);

}  // namespace gantry::vmm
