// SPDX-License-Identifier: Apache-2.0
//
// QEMU's command line. That a real one takes it, tests/vmm shows.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::HasSubstr;

class QemuArgumentsTest : public testing::Test {
 protected:
  Result<SpawnRequest> Describe(VmConfig config, QemuOptions options = {}) {
    options.program = "/proc/self/exe";
    options.control_socket = folder_.path() + "/control";
    auto vm = MakeQemu(std::move(config), options);
    if (!vm) {
      return std::unexpected(vm.error());
    }
    return (*vm)->Describe();
  }

  static std::string Lines(const SpawnRequest& request) {
    std::string text;
    for (const std::string& word : request.argv) {
      text += (word.starts_with('-') ? "\n" : " ") + word;
    }
    return text + "\n";
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

TEST_F(QemuArgumentsTest, OfAVmWithEverything) {
  VmConfig config = SmallVm();
  config.cpus = {.boot = 2, .max = 4};
  config.memory = {.bytes = 512 * kMiB, .max_bytes = 1024 * kMiB, .file = {}};
  config.hotplug_ports = 9;
  config.balloon = true;
  config.disks.push_back({.serial = "root", .path = "/images/a,b", .read_only = true});
  config.nics.push_back({.id = "eth0", .mac = "52:54:00:12:34:56", .mtu = 1400, .tap_name = {}});
  config.nics.front().tap = SomeFd();
  config.file_systems.push_back({.tag = "share", .socket = "/run/a,b/fs.sock"});
  config.vsock = Vsock{.vhost_user = "/run/vsock.sock", .vhost = {}, .uds = {}};
  const auto request = Describe(std::move(config), {.accelerator = Accelerator::kKvm});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->fds.size(), 2U);
  EXPECT_TRUE(request->program);
  EXPECT_THAT(request->env, testing::IsEmpty());
  ExpectGolden("qemu-q35.txt", Lines(*request));
}

// QEMU: "'file' driver requires '...' to be a regular file".
TEST_F(QemuArgumentsTest, ABlockDeviceHasADriverOfItsOwn) {
  const std::string device = folder_.path() + "/device";
  ASSERT_EQ(::mknod(device.c_str(), S_IFBLK | 0600, makedev(7, 199)), 0);
  VmConfig config = SmallVm();
  config.disks.push_back({.serial = "a", .path = device});
  const auto request = Describe(std::move(config));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(Lines(*request), HasSubstr(R"("driver":"host_device")"));
}

TEST_F(QemuArgumentsTest, OfAMicrovmThatIsRestored) {
  VmConfig config = SmallVm();
  config.memory = {.backing = MemoryBacking::kFile, .file = "/templates/1/memory"};
  config.from = Snapshot{.directory = "/templates/1", .memory = Snapshot::Memory::kInItsFile};
  config.hotplug_ports = 2;
  config.vsock = Vsock{.vhost_user = "/run/vsock.sock", .vhost = {}, .uds = {}};
  const auto request = Describe(std::move(config), {.machine = QemuMachine::kMicrovm});
  ASSERT_TRUE(request) << request.error().message;
  ExpectGolden("qemu-microvm.txt", Lines(*request));
}

TEST_F(QemuArgumentsTest, PassTheKernelsVsock) {
  VmConfig config = SmallVm();
  config.vsock = Vsock{.cid = 7, .vhost_user = {}, .vhost = SomeFd(), .uds = {}};
  const auto request = Describe(std::move(config));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(
      request->argv,
      Contains(R"({"driver":"vhost-vsock-pci","guest-cid":7,"id":"c-vsock","vhostfd":"4"})"));
}

TEST_F(QemuArgumentsTest, NameWhatIsMissing) {
  VmConfig config = SmallVm();
  auto vm = MakeQemu(std::move(config),
                     {.program = "/nowhere/qemu", .control_socket = folder_.path() + "/control"});
  ASSERT_TRUE(vm);
  const auto request = (*vm)->Describe();
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(request.error().message,
            "QEMU is not at '/nowhere/qemu': ENOENT: install qemu-system-x86, or name its path");
}

TEST_F(QemuArgumentsTest, HaveNoHybridVsock) {
  VmConfig config = SmallVm();
  config.vsock = Vsock{.vhost_user = {}, .vhost = {}, .uds = "/run/v.sock"};
  const auto request = Describe(std::move(config));
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::kUnimplemented);
  EXPECT_THAT(request.error().message, HasSubstr("QEMU cannot listen for a guest's streams"));
}

TEST_F(QemuArgumentsTest, GiveAMicrovmNoMoreCpus) {
  VmConfig config = SmallVm();
  config.cpus.max = 2;
  const auto request = Describe(std::move(config), {.machine = QemuMachine::kMicrovm});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::kUnimplemented);
}

TEST_F(QemuArgumentsTest, HoldTheOnlyListener) {
  auto request = Describe(SmallVm());
  ASSERT_TRUE(request);
  auto vm = MakeQemu(SmallVm(), {.control_socket = folder_.path() + "/control"}).value();
  request->fds.clear();
  // Nobody else has it: nothing waits for a VMM that has gone.
  const Status connected = vm->Connect(AtOnce(), nullptr);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("does not listen"));
}

}  // namespace
}  // namespace gantry::vmm
