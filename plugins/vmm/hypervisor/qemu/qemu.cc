// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/qemu.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/qemu/arguments.h"
#include "plugins/vmm/hypervisor/qemu/qemu_driver.h"

namespace gantry::vmm {
namespace qemu {
namespace {

/// Source: QEMU 10.0, qapi/run-state.json, RunState.
RunState StateOf(std::string_view word) {
  if (word == "running") {
    return RunState::kRunning;
  }
  if (word == "prelaunch" || word == "inmigrate") {
    return RunState::kPrepared;
  }
  if (word == "shutdown" || word == "internal-error" || word == "guest-panicked" ||
      word == "io-error") {
    return RunState::kEnded;
  }
  return RunState::kPaused;
}

/// Source: QEMU 10.0, qapi/run-state.json, ShutdownCause.
VmEnd EndOf(const QmpEvent& shutdown) {
  const auto reason = shutdown.data.find("reason");
  const std::string word = reason != shutdown.data.end() && reason->is_string()
                               ? reason->get<std::string>()
                               : std::string("unknown");
  if (word == "guest-shutdown") {
    return {.cause = EndCause::kGuestShutdown, .words = "the guest powered off"};
  }
  if (word == "guest-reset" || word == "subsystem-reset") {
    return {.cause = EndCause::kGuestReset, .words = "the guest reset itself"};
  }
  if (word == "guest-panic") {
    return {.cause = EndCause::kGuestPanic, .words = "the guest's kernel panicked"};
  }
  if (word.starts_with("host-")) {
    return {.cause = EndCause::kRequested, .words = Format("QEMU was asked to end ({})", word)};
  }
  return {.cause = EndCause::kVmmFailed, .words = Format("QEMU gave up ({})", word)};
}

/// A panic is a reset to QEMU; the console knows better.
VmEnd WithConsole(VmEnd end, const std::string& path) {
  constexpr size_t kConsole = size_t{16} << 10;
  if (end.cause != EndCause::kGuestReset && end.cause != EndCause::kGuestPanic) {
    return end;
  }
  const std::string panic = PanicIn(ReadTail(path, kConsole).value_or(std::string()));
  return panic.empty() ? end
                       : VmEnd{.cause = EndCause::kGuestPanic,
                               .words = "the guest's kernel panicked: " + panic};
}

}  // namespace

Traits Driver::traits() const {
  const bool pc = options_.machine == QemuMachine::kQ35;
  const bool ports = config_.hotplug_ports > 0;
  return {.disks = ports,
          .nics = ports,
          .file_systems = ports,
          .vsock = ports,
          .cpus = pc && config_.cpus.max > config_.cpus.boot,
          .memory = config_.memory.max_bytes > config_.memory.bytes};
}

Result<SpawnRequest> Driver::Describe() {
  GANTRY_TRY(UniqueFd listener, ListenUnix(options_.control_socket));
  return Arguments(config_, options_, std::move(listener));
}

Status Driver::Connect(Deadline deadline, const HostProcess* process) {
  return qmp_.Connect(deadline, process);
}

Status Driver::Configure(Deadline) { return {}; }

Status Driver::Do(std::string_view command, const Json& arguments, Deadline deadline) {
  GANTRY_CHECK_OK(qmp_.Execute(command, arguments, deadline));
  return {};
}

Status Driver::Boot(Deadline deadline) {
  if (config_.from) {
    return Fail(Code::kFailedPrecondition, "boot a VM of QEMU: it is one of a snapshot");
  }
  return Do("cont", deadline);
}

Status Driver::Pause(Deadline deadline) { return Do("stop", deadline); }

Status Driver::Resume(Deadline deadline) { return Do("cont", deadline); }

Status Driver::Stop(Deadline deadline) { return Do("system_powerdown", deadline); }

Status Driver::Kill(Deadline deadline) { return Do("quit", deadline); }

Result<VmStatus> Driver::GetStatus(Deadline deadline) {
  GANTRY_TRY(const Json answer, qmp_.Execute("query-status", Json(), deadline));
  const auto status = answer.find("status");
  if (!answer.is_object() || status == answer.end() || !status->is_string()) {
    return Fail(Code::kDataLoss, "ask QEMU to 'query-status': it did not say what the VM does");
  }
  auto word = status->get<std::string>();
  return VmStatus{.state = StateOf(word), .word = std::move(word)};
}

VmEnd Driver::Ended(const WaitStatus& status) {
  if (const auto shutdown = qmp_.Newest("SHUTDOWN")) {
    return WithConsole(EndOf(*shutdown), config_.console);
  }
  return vmm::EndOf("QEMU", status);
}

}  // namespace qemu

Result<std::unique_ptr<Hypervisor>> MakeQemu(VmConfig config, QemuOptions options) {
  GANTRY_CHECK_OK(CheckVmConfig(config));
  if (config.vsock && !config.vsock->uds.empty()) {
    return Unsupported(Vmm::kQemu, "listen for a guest's streams itself",
                       "give it gantry-vsock's socket, or /dev/vhost-vsock");
  }
  if (options.machine == QemuMachine::kMicrovm && config.cpus.max > config.cpus.boot) {
    return Unsupported(Vmm::kQemu, "add CPUs to a microvm", "use the machine q35");
  }
  return std::make_unique<qemu::Driver>(std::move(config), std::move(options));
}

}  // namespace gantry::vmm
