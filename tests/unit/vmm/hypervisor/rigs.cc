// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/hypervisor/rigs.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

namespace gantry::vmm {
namespace {

/// Something to be executed, which nobody does.
constexpr const char* kProgram = "/proc/self/exe";

class Qemu : public Rig {
 public:
  explicit Qemu(VmConfig config) {
    const int cpus = static_cast<int>(std::max(config.cpus.boot, config.cpus.max));
    vm_ =
        MakeQemu(std::move(config), {.program = kProgram, .control_socket = folder() + "/control"})
            .value();
    SpawnRequest request = vm_->Describe().value();
    double_ = std::make_unique<test::QemuDouble>(ListenerOf(request), cpus);
  }

  Hypervisor& vm() override { return *vm_; }

  std::set<std::string> Devices() const override { return double_->Devices(); }

  std::vector<std::string> Requests() const override { return double_->server().Requests(); }

  void HangNextPause() override { double_->server().FailNext("stop", test::QmpFault::kSilence); }

  void DropNextPause() override { double_->server().FailNext("stop", test::QmpFault::kDrop); }

  void GarbageForNextPause() override {
    double_->server().FailNext("stop", test::QmpFault::kBytes, "VNC 003.008\n");
  }

 private:
  std::unique_ptr<Hypervisor> vm_;
  std::unique_ptr<test::QemuDouble> double_;
};

class CloudHypervisor : public Rig {
 public:
  explicit CloudHypervisor(VmConfig config) {
    vm_ = MakeCloudHypervisor(std::move(config),
                              {.program = kProgram, .control_socket = folder() + "/control"})
              .value();
    SpawnRequest request = vm_->Describe().value();
    double_ = std::make_unique<test::CloudHypervisorDouble>(ListenerOf(request));
  }

  Hypervisor& vm() override { return *vm_; }

  std::set<std::string> Devices() const override { return double_->Devices(); }

  std::vector<std::string> Requests() const override { return double_->server().Requests(); }

  void HangNextPause() override { double_->server().FailNext("vm.pause", test::RestFault::kHang); }

  void DropNextPause() override { double_->server().FailNext("vm.pause", test::RestFault::kDrop); }

  void GarbageForNextPause() override {
    double_->server().FailNext("vm.pause", test::RestFault::kBytes, "SSH-2.0-OpenSSH\r\n\r\n");
  }

 private:
  std::unique_ptr<Hypervisor> vm_;
  std::unique_ptr<test::CloudHypervisorDouble> double_;
};

class Firecracker : public Rig {
 public:
  explicit Firecracker(VmConfig config) {
    vm_ = MakeFirecracker(std::move(config),
                          {.program = kProgram, .control_socket = folder() + "/control"})
              .value();
    double_ = std::make_unique<test::FirecrackerDouble>(folder() + "/control", true);
  }

  Hypervisor& vm() override { return *vm_; }

  std::set<std::string> Devices() const override { return double_->Devices(); }

  std::vector<std::string> Requests() const override { return double_->server().Requests(); }

  void HangNextPause() override { double_->server().FailNext("/vm", test::RestFault::kHang); }

  void DropNextPause() override { double_->server().FailNext("/vm", test::RestFault::kDrop); }

  void GarbageForNextPause() override {
    double_->server().FailNext("/vm", test::RestFault::kBytes, "SSH-2.0-OpenSSH\r\n\r\n");
  }

 private:
  std::unique_ptr<Hypervisor> vm_;
  std::unique_ptr<test::FirecrackerDouble> double_;
};

}  // namespace

VmConfig SmallVm() {
  VmConfig config;
  config.id = "pod-1";
  config.kernel = "/guest/vmlinuz";
  config.initrd = "/guest/initrd";
  config.cmdline = "console=ttyS0 quiet";
  config.console = "/run/pod/console.log";
  return config;
}

UniqueFd SomeFd() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

UniqueFd ListenerOf(SpawnRequest& request) { return std::move(request.fds.at(0).first); }

std::string Recorded(const std::vector<std::string>& requests, const std::string& folder) {
  std::string text;
  for (std::string line : requests) {
    for (size_t at = line.find(folder); at != std::string::npos; at = line.find(folder)) {
      line.replace(at, folder.size(), "DIR");
    }
    text += line + "\n";
  }
  return text;
}

void ExpectGolden(const std::string& name, const std::string& recorded) {
  const std::string path = std::string(GANTRY_GOLDEN) + "/" + name;
  if (std::getenv("GANTRY_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << recorded;
    return;
  }
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(recorded, expected.str()) << path;
}

std::unique_ptr<Rig> QemuRig(VmConfig config) { return std::make_unique<Qemu>(std::move(config)); }

std::unique_ptr<Rig> CloudHypervisorRig(VmConfig config) {
  return std::make_unique<CloudHypervisor>(std::move(config));
}

std::unique_ptr<Rig> FirecrackerRig(VmConfig config) {
  return std::make_unique<Firecracker>(std::move(config));
}

}  // namespace gantry::vmm
