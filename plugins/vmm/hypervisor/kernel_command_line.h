// SPDX-License-Identifier: Apache-2.0
//
// The guest kernel's command line. Nothing is switched off because it is faster that way: each
// word is decided on its own, for guests on KVM and for those that QEMU translates (TCG), with its
// reason beside it. README.md shows the table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"

namespace gantry::vmm {

enum class CmdlineProfile {
  /// Guests on KVM, whose processes may attack each other and their kernel.
  kProduction,
  /// Guests without KVM: tests, and nodes to try things on. Slower by a factor of ten and more;
  /// what costs much and defends against what an emulated processor does not do is left out.
  kTcg,
};

/// A word that is decided.
struct CmdlineWord {
  std::string_view word;
  bool production;
  bool tcg;
  /// Why it is there, and why not where it is not.
  std::string_view reason;
};

std::span<const CmdlineWord> CmdlineWords();

struct CmdlineRequest {
  CmdlineProfile profile = CmdlineProfile::kProduction;
  Vmm vmm = Vmm::kQemu;
  /// Of QEMU.
  QemuMachine machine = QemuMachine::kQ35;
  /// `HostTscKhz`; 0: not known. Needed by a microvm under TCG, which cannot measure it.
  uint64_t tsc_khz = 0;
  /// The handler's: behind all others, so that it has the last word.
  std::string extra{};
};

/// For `VmConfig::cmdline`. Errors: kFailedPrecondition: a microvm under TCG on a host whose clock
/// is not known; kInvalidArgument: `extra` is no line.
Result<std::string> KernelCommandLine(const CmdlineRequest& request);

}  // namespace gantry::vmm
