// SPDX-License-Identifier: Apache-2.0
//
// Why a VM is no more, and what its console said last: what a pod's end is told with.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry::vmm {

enum class EndCause {
  /// The guest powered itself off.
  kGuestShutdown,
  /// It reset itself, which ends the VM; a kernel that panics does so.
  kGuestReset,
  /// Its kernel panicked, and the console or the VMM says so.
  kGuestPanic,
  /// Somebody asked the VMM to end.
  kRequested,
  /// A signal ended the VMM; of SIGKILL the cause may be the memory of its cgroup.
  kSignal,
  /// The VMM gave up: its exit code, and what it wrote to its standard error, say why.
  kVmmFailed,
};

struct VmEnd {
  EndCause cause = EndCause::kVmmFailed;
  /// "the guest's kernel panicked: not syncing: No working init found"
  std::string words{};
};

/// By the status alone. `vmm` is what the words call it.
VmEnd EndOf(std::string_view vmm, const WaitStatus& status);

/// The last lines of a console, or those up to the kernel's panic; of printable characters: a guest
/// writes what it wants.
std::string ConsoleTail(std::string_view console);
/// The same of the file; what cannot be read is said in its place. Blocks: as the file system does.
std::string ConsoleTailOf(const std::string& path);
/// What the kernel said when it panicked; empty: it did not.
std::string PanicIn(std::string_view console);

/// A VM that ended before its agent said hello: kFailedPrecondition, with the console's last lines.
Error BootFailure(std::string_view vmm, const VmEnd& end, const std::string& console_path);
/// One that has not said hello within `boot deadline`: kDeadlineExceeded, the same.
Error BootTooSlow(std::string_view vmm, const std::string& console_path);

}  // namespace gantry::vmm
