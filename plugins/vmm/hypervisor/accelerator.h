// SPDX-License-Identifier: Apache-2.0
//
// Whether KVM can be used, which only a guest in it shows: where a node is a VM itself, /dev/kvm
// may be there, run a few instructions, and hang with the first kernel. So there are two canaries,
// processes that can be killed: a tiny one, which makes a VM with one processor and has it run one
// instruction, and then QEMU with the guest's own kernel, which is to panic for want of a root.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/process/ask_program.h>

namespace gantry::vmm {

enum class Accelerator {
  kKvm,
  /// QEMU translates the guest's instructions: many times slower. Of the others none can.
  kTcg,
};

struct Acceleration {
  Accelerator accelerator = Accelerator::kTcg;
  /// For who looks at the node: "KVM works (API version 12)", "KVM is not used: ...".
  std::string words;
};

struct KvmQuestion {
  /// The program gantry-kvm-canary, by a path (of a descriptor's: /proc/self/fd/N). A healthy one
  /// takes some milliseconds.
  std::string canary;
  std::chrono::milliseconds canary_limit = std::chrono::seconds(3);
  /// Empty: the tiny one is enough.
  std::string qemu{};
  std::string kernel{};
  /// A healthy one takes a second.
  std::chrono::milliseconds boot_limit = std::chrono::seconds(20);
};

/// As `AskProgram`, by whoever has the right to start processes: an engine asks its keeper.
using AskFunction = std::function<Result<std::string>(const ProgramQuestion& question)>;

/// Never fails: what cannot be found out is said, and is no KVM.
/// Blocks: up to both limits. Thread: any.
Acceleration ChooseAccelerator(const KvmQuestion& question, const AskFunction& ask = AskProgram);

/// What the tiny canary's words mean; empty ones are those of one that hung.
Acceleration AccelerationOf(const std::string& said, std::chrono::milliseconds limit);

/// The same of what QEMU said, of a KVM that `before` was found of.
Acceleration BootOf(const Acceleration& before, const std::string& said,
                    std::chrono::milliseconds limit);

/// The host's time stamp counter in kHz, where it ticks evenly; 0: it does not, or it cannot be
/// read. For `CmdlineRequest::tsc_khz`. Source: proc(5), /proc/cpuinfo. Blocks: briefly.
uint64_t HostTscKhz();
/// The same of that file's text.
uint64_t TscKhzIn(const std::string& cpuinfo);

}  // namespace gantry::vmm
