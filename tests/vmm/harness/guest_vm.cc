// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/harness/guest_vm.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "plugins/vmm/hypervisor/kernel_command_line.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxConsole = size_t{8} << 20;
constexpr size_t kShown = 4000;

/// Readable when the file has changed, or when it ends.
UniqueFd WatchOf(const std::string& path) {
  UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY);
  return watch;
}

std::string CommandLine(const std::string& more, const GuestSettings& settings,
                        const QemuOptions& options) {
  // Guests behind doubles are always translated.
  const bool tcg = options.accelerator == Accelerator::kTcg || settings.vmm != Vmm::kQemu;
  return KernelCommandLine({.profile = tcg ? CmdlineProfile::kTcg : CmdlineProfile::kProduction,
                            .vmm = settings.vmm,
                            .machine = options.machine,
                            .tsc_khz = HostTscKhz(),
                            .extra = Format("{} {}", WordsFor(settings.first), more)})
      .value();
}

/// Of the double, or of QEMU by these options.
std::unique_ptr<Hypervisor> DriverOf(Vmm vmm, const std::string& folder, VmConfig config,
                                     QemuOptions options) {
  const std::string control = folder + "/control";
  switch (vmm) {
    case Vmm::kCloudHypervisor:
      return MakeCloudHypervisor(std::move(config), {.program = GANTRY_DOUBLES "/cloud-hypervisor",
                                                     .control_socket = control})
          .value();
    case Vmm::kFirecracker:
      return MakeFirecracker(std::move(config),
                             {.program = GANTRY_DOUBLES "/firecracker", .control_socket = control})
          .value();
    case Vmm::kQemu:
      break;
  }
  options.control_socket = control;
  return MakeQemu(std::move(config), std::move(options)).value();
}

}  // namespace

VmConfig GuestVm::ConfigIn(const std::string& folder, const std::string& name) {
  const TestImage& image = TestImage::Get();
  VmConfig config;
  config.id = name;
  config.kernel = image.kernel;
  config.initrd = image.initrd;
  config.console = folder + "/console";
  return config;
}

GuestVm::GuestVm(const GuestSettings& settings) : kind_(settings.vmm) {
  VmConfig config = ConfigIn(folder(), "guest");
  QemuOptions options;
  options.accelerator = TestImage::Get().acceleration.accelerator;
  if (settings.vsock) {
    vsock_ = VsockDevice::Start(context_, folder(), *settings.vsock, Soon()).value();
    if (!settings.vsock_later) {
      config.vsock = vsock_->Config();
    }
  }
  if (settings.change) {
    settings.change(config, options);
  }
  console_ = config.console;
  WriteFile(console_, "", 0600).value();
  if (config.cmdline.empty() || config.cmdline.starts_with('+')) {
    const std::string more = config.cmdline.empty() ? "" : config.cmdline.substr(1);
    config.cmdline = CommandLine(more, settings, options);
  }
  vm_ = DriverOf(kind_, folder(), std::move(config), std::move(options));
}

GuestVm::~GuestVm() {
  if (testing::Test::HasFailure()) {
    std::printf("--- the guest's console:\n%s\n---\n", Console().c_str());
  }
  if (process_) {
    IgnoreError(process_->Signal(SIGKILL), "it may have ended");
    IgnoreError(process_->Wait(std::chrono::seconds(60)), "the context collects it");
  }
}

void GuestVm::StartUnchecked() {
  SpawnRequest request = vm_->Describe().value();
  // What it has to say goes to the log of the tests.
  request.fds.emplace_back(UniqueFd(dup(STDERR_FILENO)), STDERR_FILENO);
  if (kind_ != Vmm::kQemu) {
    // What is behind a double ends with it.
    request.new_namespaces |= CLONE_NEWPID;
  }
  process_ = context_.Spawn(std::move(request)).value();
}

void GuestVm::Start() {
  StartUnchecked();
  const Status connected = vm_->Connect(Soon(), process_.get());
  ASSERT_TRUE(connected) << connected.error().message;
  const Status configured = vm_->Configure(Soon());
  ASSERT_TRUE(configured) << configured.error().message;
}

Status GuestVm::Launch() {
  StartUnchecked();
  GANTRY_CHECK_OK(vm_->Connect(Soon(), process_.get()));
  GANTRY_CHECK_OK(vm_->Configure(Soon()));
  return vm_->Boot(Soon());
}

void GuestVm::Boot() {
  const Status launched = Launch();
  ASSERT_TRUE(launched) << launched.error().message;
  Await("gantry guest: ready");
}

std::string GuestVm::Console() const {
  return ReadTail(console_, kMaxConsole).value_or(std::string());
}

std::string GuestVm::Words() const {
  return "\n--- console:\n" + ReadTail(console_, kShown).value_or("") +
         (vsock_ ? "\n--- vsock device:\n" + vsock_->Log() : "");
}

size_t GuestVm::Await(const std::string& words, size_t from) {
  const UniqueFd watch = WatchOf(console_);
  const Deadline deadline = Soon();
  while (true) {
    const std::string console = Console();
    if (const size_t at = console.find(words, from); at != std::string::npos) {
      return at + words.size();
    }
    if (process_->Ended()) {
      ADD_FAILURE() << VmmName(kind_) << " has ended before '" << words << "' came";
      return 0;
    }
    pollfd one{watch.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      ADD_FAILURE() << "'" << words << "' has not come";
      return 0;
    }
    std::array<char, 4096> events{};
    while (read(watch.get(), events.data(), events.size()) > 0) {
    }
  }
}

VmEnd GuestVm::AwaitEnd() {
  const auto ended = process_->Wait(Left(Soon()));
  EXPECT_TRUE(ended) << VmmName(kind_) << " has not ended";
  return ended ? vm_->Ended(*ended) : VmEnd{};
}

}  // namespace gantry::vmm
