// SPDX-License-Identifier: Apache-2.0
//
// What QEMU's driver asks of its monitor. All that it can send is in golden/qmp.txt, which
// tests/vmm holds against a real QEMU's own description of its commands.
#include "plugins/vmm/hypervisor/qemu/qemu.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/qemu/devices.h"
#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using test::GuestMood;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kMac = "52:54:00:12:34:56";

class QemuTest : public testing::Test {
 protected:
  Hypervisor& Run(VmConfig config = SmallVm()) {
    const int cpus = static_cast<int>(std::max(config.cpus.boot, config.cpus.max));
    folder_ = os::TempDir::Create().value();
    vm_ = MakeQemu(std::move(config),
                   {.program = "/proc/self/exe", .control_socket = folder_.path() + "/control"})
              .value();
    SpawnRequest request = vm_->Describe().value();
    qemu_ = std::make_unique<test::QemuDouble>(ListenerOf(request), cpus);
    EXPECT_TRUE(vm_->Connect(Soon(), nullptr));
    return *vm_;
  }

  static Disk DiskOf(const std::string& serial) {
    return {.serial = serial, .path = "/images/" + serial, .read_only = true};
  }

  static Nic NicOf(const std::string& id) {
    Nic nic{.id = id, .mac = kMac, .tap_name = {}};
    nic.tap = SomeFd();
    return nic;
  }

  os::TempDir folder_;
  std::unique_ptr<Hypervisor> vm_;
  std::unique_ptr<test::QemuDouble> qemu_;
};

TEST_F(QemuTest, SendsWhatIsExpected) {
  VmConfig config = SmallVm();
  config.cpus.max = 2;
  config.memory.max_bytes = 512 * kMiB;
  config.memory.backing = MemoryBacking::kFile;
  config.memory.file = "/memory";
  config.balloon = true;
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.Boot(Soon()));
  ASSERT_TRUE(vm.GetStatus(Soon()));
  ASSERT_TRUE(vm.AddDisk(DiskOf("d1"), Soon()));
  ASSERT_TRUE(vm.AddNic(NicOf("eth0"), Soon()));
  ASSERT_TRUE(vm.AddFileSystem({.tag = "share", .socket = "/run/fs.sock"}, Soon()));
  Vsock vsock{.vhost_user = "/run/vsock.sock", .vhost = {}, .uds = {}};
  ASSERT_TRUE(vm.AddVsock(vsock, Soon()));
  ASSERT_TRUE(vm.RemoveFileSystem("share", Soon()));
  ASSERT_TRUE(vm.RemoveNic("eth0", Soon()));
  ASSERT_TRUE(vm.RemoveDisk("d1", Soon()));
  ASSERT_TRUE(vm.SetCpus(2, Soon()));
  ASSERT_TRUE(vm.SetCpus(1, Soon()));
  ASSERT_TRUE(vm.SetMemory(300 * kMiB, Soon()));
  ASSERT_TRUE(vm.SetMemory(256 * kMiB, Soon()));
  ASSERT_TRUE(vm.SetBalloon(64 * kMiB, Soon()));
  ASSERT_TRUE(vm.GetSizes(Soon()));
  ASSERT_TRUE(vm.Pause(Soon()));
  ASSERT_TRUE(vm.TakeSnapshot({.directory = "/t", .memory = Snapshot::Memory::kInItsFile}, Soon()));
  ASSERT_TRUE(vm.Resume(Soon()));
  ASSERT_TRUE(vm.TakeSnapshot({.directory = "/t"}, Soon()));
  ASSERT_TRUE(vm.Stop(Soon()));
  ASSERT_TRUE(vm.Kill(Soon()));
  ExpectGolden("qmp.txt", Recorded(qemu_->server().Requests(), folder_.path()));
}

TEST_F(QemuTest, RestoresAndThenAddsWhatASnapshotCannotHave) {
  VmConfig config = SmallVm();
  config.from = Snapshot{.directory = "/t"};
  config.vsock = Vsock{.vhost_user = "/run/vsock.sock", .vhost = {}, .uds = {}};
  config.file_systems.push_back({.tag = "share", .socket = "/run/fs.sock"});
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.Restore(Soon()));
  EXPECT_THAT(qemu_->Devices(), ElementsAre("p0-fs-share", "p1-vsock"));
  ExpectGolden("qmp-restore.txt", Recorded(qemu_->server().Requests(), folder_.path()));
}

TEST_F(QemuTest, SaysWhyASnapshotFailed) {
  Hypervisor& vm = Run();
  qemu_->SetMigration("failed");
  const Status taken = vm.TakeSnapshot({.directory = "/t"}, Soon());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message,
            "ask QEMU to 'migrate' with '/t/state': it failed: no space left");
}

TEST_F(QemuTest, PutsDevicesIntoFreePorts) {
  VmConfig config = SmallVm();
  config.hotplug_ports = 2;
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  ASSERT_TRUE(vm.AddDisk(DiskOf("b"), Soon()));
  const auto third = vm.AddDisk(DiskOf("c"), Soon());
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::kResourceExhausted);
  ASSERT_TRUE(vm.RemoveDisk("a", Soon()));
  ASSERT_TRUE(vm.AddDisk(DiskOf("c"), Soon()));
  EXPECT_THAT(qemu_->Devices(), ElementsAre("p0-disk-c", "p1-disk-b"));
}

TEST_F(QemuTest, KnowsDevicesOfTheEngineBefore) {
  Hypervisor& first = Run();
  ASSERT_TRUE(first.AddDisk(DiskOf("a"), Soon()));
  auto next = MakeQemu(SmallVm(), {.control_socket = folder_.path() + "/control"}).value();
  qemu_->server().CutOff();
  ASSERT_TRUE(next->Connect(Soon(), nullptr));
  const auto again = next->AddDisk(DiskOf("a"), Soon());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_TRUE(next->RemoveDisk("a", Soon()));
  EXPECT_THAT(qemu_->Devices(), IsEmpty());
  EXPECT_THAT(qemu_->Backends(), IsEmpty());
}

TEST_F(QemuTest, LeavesNothingOfADeviceThatWasRefused) {
  Hypervisor& vm = Run();
  qemu_->RefuseDevices();
  EXPECT_FALSE(vm.AddDisk(DiskOf("a"), Soon()));
  EXPECT_FALSE(vm.AddNic(NicOf("eth0"), Soon()));
  EXPECT_FALSE(vm.AddFileSystem({.tag = "share", .socket = "/run/fs.sock"}, Soon()));
  Vsock vsock{.vhost_user = "/run/vsock.sock", .vhost = {}, .uds = {}};
  EXPECT_FALSE(vm.AddVsock(vsock, Soon()));
  EXPECT_THAT(qemu_->Backends(), IsEmpty());
}

/// A QEMU that may not open its disks' paths.
class QemuOfAUser : public QemuTest {
 protected:
  void SetUp() override {
    folder_ = os::TempDir::Create().value();
    file_ = folder_.path() + "/disk";
    ASSERT_TRUE(WriteFile(file_, "data", 0600));
  }

  void Begin(VmConfig config) {
    vm_ = MakeQemu(std::move(config), {.program = "/proc/self/exe",
                                       .control_socket = folder_.path() + "/control",
                                       .opens_disks_for_it = true})
              .value();
    SpawnRequest request = vm_->Describe().value();
    qemu_ = std::make_unique<test::QemuDouble>(ListenerOf(request));
    ASSERT_TRUE(vm_->Connect(Soon(), nullptr));
  }

  std::string file_;
};

// The state of a template is not for everybody to read.
TEST_F(QemuOfAUser, GetsItsSnapshotOpen) {
  VmConfig config = SmallVm();
  config.from = Snapshot{.directory = folder_.path()};
  Begin(std::move(config));
  const Status without = vm_->Restore(Soon());
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr(folder_.path() + "/state'"));
  ASSERT_TRUE(WriteFile(folder_.path() + "/state", "data", 0400));
  const Status restored = vm_->Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_THAT(qemu_->server().Requests(),
              testing::Contains(HasSubstr("\"uri\":\"file:/dev/fdset/0\"")));
  EXPECT_THAT(qemu_->FdSets(), IsEmpty());
}

TEST_F(QemuOfAUser, GetsItsDisksOpen) {
  Begin(SmallVm());
  const auto added = vm_->AddDisk({.serial = "d1", .path = file_}, Soon());
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_THAT(qemu_->FdSets(), ElementsAre("disk-d1"));
  const std::vector<std::string> requests = qemu_->server().Requests();
  EXPECT_THAT(requests, testing::Contains(HasSubstr("\"filename\":\"/dev/fdset/0\"")));
  EXPECT_THAT(requests, testing::Not(testing::Contains(HasSubstr(file_))));
  ASSERT_TRUE(vm_->RemoveDisk("d1", Soon()));
  EXPECT_THAT(qemu_->FdSets(), IsEmpty()) << "QEMU would have the file open for ever";
}

TEST_F(QemuOfAUser, LeavesNoDescriptorOfADiskThatWasRefused) {
  Begin(SmallVm());
  qemu_->RefuseDevices();
  EXPECT_FALSE(vm_->AddDisk({.serial = "d1", .path = file_}, Soon()));
  EXPECT_THAT(qemu_->FdSets(), IsEmpty());
  EXPECT_THAT(qemu_->Backends(), IsEmpty());
}

TEST_F(QemuOfAUser, IsNotGivenWhatCannotBeOpened) {
  Begin(SmallVm());
  const auto added = vm_->AddDisk({.serial = "d1", .path = "/images/none"}, Soon());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::kNotFound);
  EXPECT_THAT(added.error().message, HasSubstr("/images/none"));
}

TEST(QemuDisks, OfBlockDevicesAreOpenedAsSuch) {
  const Disk disk = {.serial = "d1", .path = "/dev/null"};
  EXPECT_FALSE(qemu::SourceOf(disk).is_block_device);
  EXPECT_EQ(qemu::DiskNode(disk, {.filename = "/dev/x", .is_block_device = true})["file"]["driver"],
            "host_device");
  EXPECT_EQ(qemu::DiskNode(disk, {.filename = "/x"})["file"]["driver"], "file");
}

TEST_F(QemuTest, TellsThatTheGuestRefuses) {
  Hypervisor& vm = Run();
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  qemu_->SetGuest(GuestMood::kRefuses);
  const Status removed = vm.RemoveDisk("a", Soon());
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(removed.error().message, HasSubstr("the guest does not let go of 'p0-disk-a'"));
  EXPECT_THAT(qemu_->Backends(), ElementsAre("disk-a"));
}

TEST_F(QemuTest, ASilentGuestHoldsUpNobodyElse) {
  Hypervisor& vm = Run();
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  qemu_->SetGuest(GuestMood::kSilent);
  Status removed;
  std::thread waits([&] { removed = vm.RemoveDisk("a", Soon()); });
  while (!std::ranges::contains(qemu_->server().Requests(),
                                R"({"arguments":{"id":"p0-disk-a"},"execute":"device_del"})")) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(vm.GetStatus(Soon()));
  }
  // What it was told of another device does not let it go on.
  qemu_->server().Emit("DEVICE_DELETED", {{"device", "p0-disk-other"}});
  qemu_->server().Emit("DEVICE_DELETED", {{"device", "p0-disk-a"}});
  waits.join();
  EXPECT_TRUE(removed) << removed.error().message;
}

TEST_F(QemuTest, RemovesWhatTheGuestLetGoOfTooLate) {
  Hypervisor& vm = Run();
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  qemu_->SetGuest(GuestMood::kSilent);
  const Status late = vm.RemoveDisk("a", AtOnce());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  qemu_->SetGuest(GuestMood::kLetsGo);
  EXPECT_TRUE(vm.RemoveDisk("a", Soon()));
  EXPECT_THAT(qemu_->Backends(), IsEmpty());
  const Status again = vm.RemoveDisk("a", Soon());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kNotFound);
}

TEST_F(QemuTest, WaitsForARemovalThatIsUnderWay) {
  Hypervisor& vm = Run();
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  qemu_->SetGuest(GuestMood::kSilent);
  for (int i = 0; i < 2; ++i) {
    const Status late = vm.RemoveDisk("a", AtOnce());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kDeadlineExceeded) << late.error().message;
  }
}

TEST_F(QemuTest, BelievesNoOldEvent) {
  Hypervisor& vm = Run();
  ASSERT_TRUE(vm.AddDisk(DiskOf("a"), Soon()));
  qemu_->SetGuest(GuestMood::kSilent);
  qemu_->server().Emit("DEVICE_DELETED", {{"device", "p0-disk-a"}});
  const Status removed = vm.RemoveDisk("a", AtOnce());
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Code::kDeadlineExceeded);
}

TEST_F(QemuTest, GivesCpusAndTakesThemBack) {
  VmConfig config = SmallVm();
  config.cpus.max = 4;
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.SetCpus(3, Soon()));
  EXPECT_EQ(vm.GetSizes(Soon()).value().cpus, 3U);
  ASSERT_TRUE(vm.SetCpus(3, Soon()));
  ASSERT_TRUE(vm.SetCpus(1, Soon()));
  EXPECT_EQ(vm.GetSizes(Soon()).value().cpus, 1U);
  const Status many = vm.SetCpus(5, Soon());
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, Code::kInvalidArgument);
}

TEST_F(QemuTest, TakesNoSnapshotThatWouldLackMemory) {
  VmConfig config = SmallVm();
  const Snapshot snapshot{.directory = "/t", .memory = Snapshot::Memory::kInItsFile};
  EXPECT_EQ(Run().TakeSnapshot(snapshot, Soon()).error().code, Code::kFailedPrecondition);
  config.memory = {.max_bytes = 512 * kMiB, .backing = MemoryBacking::kFile, .file = "/m"};
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.SetMemory(512 * kMiB, Soon()));
  const Status taken = vm.TakeSnapshot(snapshot, Soon());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kFailedPrecondition);
}

TEST_F(QemuTest, KnowsWhyItEnded) {
  Hypervisor& vm = Run();
  WaitStatus status;
  qemu_->server().Emit("SHUTDOWN", {{"guest", true}, {"reason", "guest-shutdown"}});
  EXPECT_EQ(vm.Ended(status).cause, EndCause::kGuestShutdown);
  ASSERT_TRUE(vm.Kill(Soon()));
  EXPECT_EQ(vm.Ended(status).cause, EndCause::kRequested);
}

TEST_F(QemuTest, ReadsAPanicFromTheConsole) {
  VmConfig config = SmallVm();
  const os::TempDir folder = os::TempDir::Create().value();
  config.console = folder.path() + "/console";
  ASSERT_TRUE(
      WriteFile(config.console, "x\n[ 1.2] Kernel panic - not syncing: No init found\n", 0600));
  Hypervisor& vm = Run(std::move(config));
  qemu_->server().Emit("SHUTDOWN", {{"guest", true}, {"reason", "guest-reset"}});
  const VmEnd end = vm.Ended({});
  EXPECT_EQ(end.cause, EndCause::kGuestPanic);
  EXPECT_EQ(end.words, "the guest's kernel panicked: not syncing: No init found");
}

TEST(QemuDevices, AreFoundByTheirIds) {
  using qemu::Kind;
  using qemu::PlaceIn;
  EXPECT_EQ(PlaceIn("p12-disk-a", Kind::kDisk, "a")->port, 12U);
  EXPECT_EQ(PlaceIn("c-disk-a", Kind::kDisk, "a")->port, std::nullopt);
  EXPECT_FALSE(PlaceIn("p12-disk-ab", Kind::kDisk, "a"));
  EXPECT_FALSE(PlaceIn("p12-nic-a", Kind::kDisk, "a"));
  EXPECT_FALSE(PlaceIn("px-disk-a", Kind::kDisk, "a"));
  EXPECT_FALSE(PlaceIn("more-memory", Kind::kDisk, "memory"));
  EXPECT_EQ(qemu::FreePort({"p0-disk-a", "port1", "p2-nic-b", "p10-vsock"}, 4), 1U);
  EXPECT_FALSE(qemu::FreePort({"p0-disk-a"}, 1));
}

}  // namespace
}  // namespace gantry::vmm
