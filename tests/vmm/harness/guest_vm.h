// SPDX-License-Identifier: Apache-2.0
//
// A guest of a real QEMU, driven as the backend drives it: the one way in which tests boot
// machines. Or of a double of another VMM, with a QEMU behind it. By KVM where it works, else
// translated, which a test shall not notice but by the time that it takes. Where a test has failed,
// its console is shown.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "tests/vmm/harness/test_image.h"
#include "tests/vmm/harness/vsock_device.h"

namespace gantry::vmm {

/// No test waits longer for what comes: a guest that QEMU translates, on a busy machine.
inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(3); }

struct GuestSettings {
  /// Those beside QEMU are the doubles of tests/vmm/doubles.
  Vmm vmm = Vmm::kQemu;
  FirstProcess first = FirstProcess::kDevices;
  /// Its process runs from the beginning; none: there is no such device.
  std::optional<VsockProgram> vsock;
  /// The machine boots without it: `AddVsock` of the driver gives it.
  bool vsock_later = false;
  /// May alter the configuration and the options, which are QEMU's alone. A command line that
  /// begins with `+` is more words.
  std::function<void(VmConfig&, QemuOptions&)> change;
};

/// Thread: the test's.
class GuestVm {
 public:
  explicit GuestVm(std::function<void(VmConfig&, QemuOptions&)> change = {})
      : GuestVm(GuestSettings{.vsock = {}, .change = std::move(change)}) {}

  /// Fails the test where the configuration is none.
  explicit GuestVm(const GuestSettings& settings);
  GuestVm(const GuestVm&) = delete;
  GuestVm& operator=(const GuestVm&) = delete;
  ~GuestVm();

  /// Started by the fake keeper, and connected.
  void Start();
  /// Without a connection to it.
  void StartUnchecked();

  /// As where the engine ends; `vm` is gone.
  void Disconnect() { vm_.reset(); }

  /// Started, and on its way: Errors: with the console's end.
  Status Launch();
  /// Until its first process, `kDevices`, is ready.
  void Boot();

  Hypervisor& vm() { return *vm_; }

  HostProcess& process() { return *process_; }

  VsockDevice& vsock() { return *vsock_; }

  const std::string& folder() const { return folder_.path(); }

  std::string Console() const;
  /// The console's end and what the device has said: for an error.
  std::string Words() const;
  /// Waits until the console has these words behind the place `from`; gives the place behind them.
  /// Fails the test where they do not come.
  size_t Await(const std::string& words, size_t from = 0);

  /// How far the guest's console has come.
  size_t ConsoleSize() const { return Console().size(); }

  VmEnd AwaitEnd();

  static VmConfig ConfigIn(const std::string& folder, const std::string& name);

 private:
  const Vmm kind_;
  os::TempDir folder_ = os::TempDir::Create("/tmp/gvm-").value();
  std::string console_;
  FakeSandboxContext context_;
  std::optional<VsockDevice> vsock_;
  std::unique_ptr<Hypervisor> vm_;
  std::shared_ptr<HostProcess> process_;
};

}  // namespace gantry::vmm
