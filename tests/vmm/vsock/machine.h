// SPDX-License-Identifier: Apache-2.0
//
// A guest under QEMU, without KVM, with tests/vmm/guest/init.cc as its init and a vsock device that
// is a program of its own: gantry's or rust-vmm's.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/os/fs.h"

namespace gantry::vmm {

enum class VsockProgram {
  kOurs,
  /// rust-vmm's vhost-device-vsock.
  kPeer,
};

struct MachineSettings {
  VsockProgram vsock = VsockProgram::kOurs;
  /// The guest boots without the device and gets it later.
  bool hot_added = false;
};

/// What a test on this machine lacks; empty: nothing.
std::string WhatIsMissing(bool with_peer);

/// A process of a test's, which does not outlive it.
class Child {
 public:
  Child() = default;
  /// Descriptors are inherited under their own numbers. Its output goes to `log`.
  Child(std::vector<std::string> words, const std::vector<int>& inherited, const std::string& log);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }

  /// The status of waitpid; -1: it goes on after `limit`.
  int Wait(std::chrono::milliseconds limit);

 private:
  pid_t pid_ = -1;
};

class Machine {
 public:
  /// Booted, and its init is there. Errors: with the console's last lines.
  static Result<Machine> Boot(MachineSettings settings = {});

  /// A blocking socket, connected to a port of the guest.
  Result<UniqueFd> Dial(uint32_t port) const;
  /// Without waiting for the answer.
  UniqueFd BeginToDial(uint32_t port) const;

  /// Where the guest's port 1026 is answered.
  const UniqueFd& reports() const { return reports_; }

  /// One command of QMP. Returns what it says. Errors: that of the command.
  Result<std::string> Monitor(const std::string& command) const;

  Child& vsock() { return vsock_; }

  Child& qemu() { return qemu_; }

  std::string Console() const;
  /// What the vsock device's program has said.
  std::string VsockLog() const;

 private:
  Machine() = default;
  Status StartVsock(VsockProgram program);
  Status StartQemu(const MachineSettings& settings);
  Status OpenMonitor();
  Status AddDevice() const;
  Status AwaitReady();

  std::string PathOf(const char* name) const { return directory_.path() + "/" + name; }

  os::TempDir directory_;
  UniqueFd ready_;
  UniqueFd reports_;
  UniqueFd monitor_;
  Child vsock_;
  Child qemu_;
};

/// All of `size` bytes, within a minute. Errors: kUnavailable: the end came before.
Result<std::string> ReadFrom(int socket, size_t size);
/// All until the end, within a minute.
Result<std::string> ReadToEnd(int socket);
Status WriteTo(int socket, std::string_view data);

}  // namespace gantry::vmm
