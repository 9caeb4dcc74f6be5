// SPDX-License-Identifier: Apache-2.0
//
// What a handler or a request may set for this backend.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "plugins/vmm/storage/options.h"

namespace gantry::vmm {

enum class AcceleratorChoice {
  /// KVM where the canary found that it works, else TCG, which is QEMU's alone.
  kAuto,
  kKvm,
  kTcg,
};

/// Thread: any; plain data.
struct VmmOptions {
  /// `vmm`: qemu, cloud-hypervisor or firecracker.
  Vmm vmm = Vmm::kQemu;
  /// `vmm_path`: its program; empty: where its package puts it.
  std::string vmm_path{};
  /// `machine`: of QEMU, q35 or microvm.
  QemuMachine machine = QemuMachine::kQ35;
  /// `accelerator`: auto, kvm or tcg.
  AcceleratorChoice accelerator = AcceleratorChoice::kAuto;
  /// `kernel` and `initrd`: empty: those that are installed (machine/image.h).
  std::string kernel{};
  std::string initrd{};
  /// `cmdline`: words behind those of `KernelCommandLine`.
  std::string cmdline{};
  /// `boot_timeout_ms`: from the VMM's start to the agent's hello.
  std::chrono::milliseconds boot_timeout{60'000};
  /// `cpus` and `memory_mib`: of a VM before its containers' limits are added. See
  /// machine/sizes.h.
  uint32_t cpus = 1;
  uint32_t memory_mib = 256;
  /// `max_cpus` and `max_memory_mib`: what it can grow to; 0: what the node has.
  uint32_t max_cpus = 0;
  uint32_t max_memory_mib = 0;
  /// `balloon`: the guest gives back by itself what it has freed.
  bool balloon = true;
  /// `hotplug_ports`: so many disks and NICs can be added to a running VM.
  uint32_t hotplug_ports = 16;
  /// `template`: so many VMs that wait for pods, restored from a snapshot of one that was booted;
  /// 0: each pod's is booted. See template/README.md.
  uint32_t templates = 0;
  /// `virtiofsd`, `virtiofs_cache`, `root_fs`, `writable_layer_mib` and
  /// `layers_directory`.
  StorageOptions storage{};
  /// `first_user` and `users`: of these ids each VM has one, for its VMM and its vsock device. 0
  /// users: they run as root, without a capability. The default is of a range that no distribution
  /// gives to anybody. Source: systemd, docs/UIDS-GIDS.md.
  uint32_t first_user = 1'900'000'000;
  uint32_t users = 65'536;
  /// `own_root`: a VMM sees of the node what it needs, and nothing else. See machine/vmm_root.h.
  bool own_root = true;
  /// `directory`: of sockets and consoles of all VMs; on a tmpfs, root's, at most
  /// `kMaxBaseDirectory` bytes, since sockets in it have short paths. Not below /run/gantry, where
  /// no VMM's user gets to.
  std::string directory = "/run/gantry-vmm";
};

inline constexpr size_t kMaxBaseDirectory = 56;

/// Places for what a VM of a template gets when it is restored: vsock, files, two interfaces.
inline constexpr uint32_t kTemplatePlaces = 4;

/// `base` with what `json` sets; empty text sets nothing. Unknown keys are put into `unknown`;
/// without `unknown` they are an error. Errors: kInvalidArgument naming the key.
Result<VmmOptions> ParseOptions(const std::string& json, VmmOptions base,
                                std::vector<std::string>* unknown);

/// The VMM's program that the options mean.
std::string VmmProgram(const VmmOptions& options);

}  // namespace gantry::vmm
