// SPDX-License-Identifier: Apache-2.0
//
// A VM of a real QEMU with the guest of tests/vmm/guest, driven as the backend will drive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"

namespace gantry::vmm {

/// No test waits longer for what comes: a guest that QEMU translates, on a busy machine.
inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(3); }

/// What guests are made of on this machine; found once.
struct GuestFiles {
  /// Empty: it cannot be booted here, and why.
  std::string kernel;
  std::string why_not;
  std::string initrd;
  Acceleration acceleration;

  static const GuestFiles& Get();
};

/// An archive of the kernel's own format, uncompressed. Source: Linux,
/// Documentation/driver-api/early-userspace/buffer-format.rst.
class Initramfs {
 public:
  void AddFolder(const std::string& path);
  void AddFile(const std::string& path, const std::string& content, unsigned mode);
  /// All of it.
  std::string Finish();

 private:
  void Add(const std::string& path, const std::string& content, unsigned mode);

  std::string bytes_;
  unsigned inode_ = 0;
};

class GuestVm {
 public:
  /// `change` may alter the configuration and the options.
  explicit GuestVm(const std::function<void(VmConfig&, QemuOptions&)>& change = {});
  GuestVm(const GuestVm&) = delete;
  GuestVm& operator=(const GuestVm&) = delete;
  ~GuestVm();

  /// Started by the fake keeper, and connected.
  void Start();
  /// Without a connection to it.
  void StartUnchecked();

  /// As where the engine ends; `vm` is gone.
  void Disconnect() { vm_.reset(); }

  void Boot();

  Hypervisor& vm() { return *vm_; }

  HostProcess& process() { return *process_; }

  const std::string& folder() const { return folder_.path(); }

  std::string Console() const;
  /// Waits until the console has these words behind the place `from`; gives the place behind them.
  /// Fails the test where they do not come, and shows the console.
  size_t Await(const std::string& words, size_t from = 0);

  /// How far the guest's console has come.
  size_t ConsoleSize() const { return Console().size(); }

  VmEnd AwaitEnd();

  static VmConfig ConfigIn(const std::string& folder, const std::string& name);

 private:
  os::TempDir folder_ = os::TempDir::Create().value();
  std::string console_;
  FakeSandboxContext context_;
  std::unique_ptr<Hypervisor> vm_;
  std::shared_ptr<HostProcess> process_;
};

}  // namespace gantry::vmm
