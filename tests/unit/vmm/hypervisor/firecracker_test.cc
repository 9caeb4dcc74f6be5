// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"

#include <sys/wait.h>

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FirecrackerTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/api.sock"; }

  Hypervisor& Make(VmConfig config, bool pci = true) {
    vm_ = MakeFirecracker(
              std::move(config),
              {.program = "/proc/self/exe", .control_socket = Path(), .jailer = {}, .pci = pci})
              .value();
    double_ = std::make_unique<test::FirecrackerDouble>(Path(), pci);
    EXPECT_TRUE(vm_->Connect(Soon(), nullptr));
    return *vm_;
  }

  static Nic NicOf(const std::string& id) {
    return {.id = id, .mac = "52:54:00:12:34:56", .mtu = 1500, .tap = {}, .tap_name = "tap-" + id};
  }

  static VmConfig Everything() {
    VmConfig config = SmallVm();
    config.cpus.boot = 2;
    config.memory.max_bytes = 512 * kMiB;
    config.balloon = true;
    config.disks.push_back({.serial = "root", .path = "/images/root", .read_only = true});
    config.nics.push_back(NicOf("eth0"));
    config.vsock = Vsock{.vhost_user = {}, .vhost = {}, .uds = "/run/v.sock"};
    return config;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::unique_ptr<Hypervisor> vm_;
  std::unique_ptr<test::FirecrackerDouble> double_;
};

TEST_F(FirecrackerTest, SendsWhatIsExpected) {
  Hypervisor& vm = Make(Everything());
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  ASSERT_TRUE(vm.AddDisk({.serial = "d1", .path = "/proc/self/exe"}, Soon()));
  ASSERT_TRUE(vm.AddNic(NicOf("eth1"), Soon()));
  ASSERT_TRUE(vm.RemoveNic("eth1", Soon()));
  ASSERT_TRUE(vm.RemoveDisk("d1", Soon()));
  ASSERT_TRUE(vm.SetMemory(300 * kMiB, Soon()));
  ASSERT_TRUE(vm.SetBalloon(64 * kMiB, Soon()));
  ASSERT_TRUE(vm.GetSizes(Soon()));
  ASSERT_TRUE(vm.Pause(Soon()));
  ASSERT_TRUE(vm.TakeSnapshot({.directory = "/t"}, Soon()));
  ASSERT_TRUE(vm.Resume(Soon()));
  ASSERT_TRUE(vm.Stop(Soon()));
  ExpectGolden("firecracker.txt", Recorded(double_->server().Requests(), folder_.path()));
}

TEST_F(FirecrackerTest, RestoresWithTapsAndVsockOfItsOwn) {
  VmConfig config = Everything();
  config.from = Snapshot{.directory = "/t"};
  Hypervisor& vm = Make(std::move(config));
  ASSERT_TRUE(vm.Configure(Soon()));
  const Status restored = vm.Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(double_->State(), "Paused");
  ExpectGolden("firecracker-restore.txt", Recorded(double_->server().Requests(), folder_.path()));
}

TEST_F(FirecrackerTest, GivesTheSerialThatItsGuestsSee) {
  Hypervisor& vm = Make(SmallVm());
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  const auto seen = vm.AddDisk({.serial = "d1", .path = "/proc/self/exe"}, Soon());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(*seen, FirecrackerSerial("/proc/self/exe").value());
  EXPECT_LE(seen->size(), 20U);
  const auto none = vm.AddDisk({.serial = "d2", .path = "/nowhere"}, Soon());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
}

// Containers share layers, so that a disk is added more than once.
TEST_F(FirecrackerTest, SaysThatADriveIsThere) {
  Hypervisor& vm = Make(SmallVm());
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  ASSERT_TRUE(vm.AddDisk({.serial = "d1", .path = "/proc/self/exe"}, Soon()));
  const auto again = vm.AddDisk({.serial = "d1", .path = "/proc/self/exe"}, Soon());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
}

TEST_F(FirecrackerTest, SaysWhatItHasNot) {
  Hypervisor& vm = Make(SmallVm(), /*pci=*/false);
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  EXPECT_EQ(vm.AddDisk({.serial = "d1", .path = "/x"}, Soon()).error().message,
            "Firecracker cannot add a disk to a running VM: it was started without PCI (from "
            "Firecracker 1.16 on)");
  EXPECT_EQ(vm.AddFileSystem({.tag = "t", .socket = "/s"}, Soon()).error().message,
            "Firecracker cannot share a file system: it has no virtiofs; give roots and volumes as "
            "block images");
  EXPECT_EQ(vm.AddVsock({}, Soon()).error().code, Code::kUnimplemented);
  EXPECT_EQ(vm.Kill(Soon()).error().code, Code::kUnimplemented);
}

TEST_F(FirecrackerTest, RefusesConfigurationsThatItHasNot) {
  const auto code_of = [](VmConfig config) {
    return MakeFirecracker(std::move(config), {}).error().code;
  };
  VmConfig config = SmallVm();
  config.file_systems.push_back({.tag = "t", .socket = "/s"});
  EXPECT_EQ(code_of(std::move(config)), Code::kUnimplemented);
  config = SmallVm();
  config.cpus.boot = 3;
  EXPECT_EQ(code_of(std::move(config)), Code::kInvalidArgument);
  config = SmallVm();
  config.memory.max_bytes = 258 * kMiB;
  EXPECT_EQ(code_of(std::move(config)), Code::kInvalidArgument);
  config = SmallVm();
  config.nics.push_back({.id = "e", .mac = "52:54:00:12:34:56", .tap = {}, .tap_name = {}});
  EXPECT_EQ(code_of(std::move(config)), Code::kUnimplemented);
}

TEST_F(FirecrackerTest, TellsWhatIsTakenBeforeTheStartAlone) {
  Hypervisor& vm = Make(SmallVm());
  ASSERT_TRUE(vm.Configure(Soon()));
  ASSERT_TRUE(vm.Boot(Soon()));
  const Status again = vm.Configure(Soon());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(again.error().message,
            "ask Firecracker to 'PUT /machine-config': it answered 400: The requested operation is "
            "not supported after starting the microVM.");
}

TEST_F(FirecrackerTest, IsStartedByItsJailer) {
  Jailer jailer{.program = "/proc/self/exe",
                .uid = 1001,
                .gid = 1002,
                .base = folder_.path(),
                .network_namespace = "/run/netns/pod"};
  auto vm = MakeFirecracker(SmallVm(), {.program = "/opt/firecracker-v1.17",
                                        .control_socket = "/api.sock",
                                        .jailer = jailer})
                .value();
  const auto request = vm->Describe();
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(
      request->argv,
      ElementsAre("/proc/self/exe", "--id", "pod-1", "--exec-file", "/opt/firecracker-v1.17",
                  "--uid", "1001", "--gid", "1002", "--chroot-base-dir", folder_.path(), "--netns",
                  "/run/netns/pod", "--", "--api-sock", "/api.sock", "--enable-pci"));
  EXPECT_EQ(JailRoot(jailer, "/opt/firecracker-v1.17", "pod-1"),
            folder_.path() + "/firecracker-v1.17/pod-1/root");
  const Status connected = vm->Connect(AtOnce(), nullptr);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message,
              HasSubstr(folder_.path() + "/firecracker-v1.17/pod-1/root/api.sock"));
}

TEST_F(FirecrackerTest, KnowsItsExitCodes) {
  Hypervisor& vm = Make(SmallVm());
  WaitStatus status;
  status.raw = W_EXITCODE(148, 0);
  EXPECT_THAT(vm.Ended(status).words, HasSubstr("a system call that its filter"));
  status.raw = W_EXITCODE(0, 0);
  EXPECT_EQ(vm.Ended(status).cause, EndCause::kGuestShutdown);
}

}  // namespace
}  // namespace gantry::vmm
