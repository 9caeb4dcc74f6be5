// SPDX-License-Identifier: Apache-2.0
//
// QEMU's driver against a real QEMU and a real guest.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/backoff.h>

#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/tap.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

constexpr const char* kMac = "52:54:00:12:34:56";

class QemuVmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto& files = TestImage::Get(); !files.why_not.empty()) {
      GTEST_SKIP() << files.why_not;
    }
  }

  /// A disk of a MiB.
  static Disk DiskIn(const GuestVm& guest, const std::string& serial) {
    const std::string path = guest.folder() + "/" + serial + ",.img";
    std::ofstream(path) << "x";
    std::filesystem::resize_file(path, size_t{1} << 20);
    return {.serial = serial, .path = path, .read_only = true};
  }

  /// The guest takes part in what happens to its machine.
  static void ExpectGoesOn(GuestVm& guest) {
    const auto added = guest.vm().AddDisk(DiskIn(guest, "goeson"), Soon());
    ASSERT_TRUE(added) << added.error().message;
    guest.Await("has disk goeson");
  }
};

TEST_F(QemuVmTest, BootsPausesAndGoesOn) {
  GuestVm guest;
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(guest.vm().GetStatus(Soon()).value().state, RunState::kRunning);
  ASSERT_TRUE(guest.vm().Pause(Soon()));
  EXPECT_EQ(guest.vm().GetStatus(Soon()).value().state, RunState::kPaused);
  ASSERT_TRUE(guest.vm().Resume(Soon()));
  ExpectGoesOn(guest);
  ASSERT_TRUE(guest.vm().Kill(Soon()));
  EXPECT_EQ(guest.AwaitEnd().cause, EndCause::kRequested);
}

TEST_F(QemuVmTest, AddsAndRemovesADisk) {
  GuestVm guest;
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  for (int round = 0; round < 2; ++round) {
    const size_t from = guest.ConsoleSize();
    const auto added = guest.vm().AddDisk(DiskIn(guest, "d1"), Soon());
    ASSERT_TRUE(added) << added.error().message;
    guest.Await("has disk d1 read-only 1", from);
    const Status removed = guest.vm().RemoveDisk("d1", Soon());
    ASSERT_TRUE(removed) << removed.error().message;
    guest.Await("lost disk d1", from);
  }
}

TEST_F(QemuVmTest, HasTheDisksOfItsConfiguration) {
  const os::TempDir images = os::TempDir::Create().value();
  GuestVm guest([&](VmConfig& config, QemuOptions&) {
    const std::string path = images.path() + "/root";
    std::ofstream(path) << std::string(4096, 'x');
    config.disks.push_back({.serial = "root", .path = path, .read_only = true});
  });
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  guest.Await("has disk root read-only 1");
  EXPECT_EQ(guest.vm().RemoveDisk("root", Soon()).error().code, Code::kFailedPrecondition);
}

TEST_F(QemuVmTest, AddsAndRemovesANic) {
  GuestVm guest;
  Nic nic{.id = "eth0", .mac = kMac, .mtu = 1400};
  nic.tap = MakeTap();
  if (!nic.tap) {
    GTEST_SKIP() << "no tap can be made here";
  }
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  const Status added = guest.vm().AddNic(nic, Soon());
  ASSERT_TRUE(added) << added.error().message;
  guest.Await(std::string("has nic ") + kMac + " mtu 1400");
  const Status removed = guest.vm().RemoveNic("eth0", Soon());
  ASSERT_TRUE(removed) << removed.error().message;
  guest.Await(std::string("lost nic ") + kMac);
}

TEST_F(QemuVmTest, TakesMemoryByTheBalloonAndGivesItBack) {
  GuestVm guest([](VmConfig& config, QemuOptions&) { config.balloon = true; });
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  for (const uint64_t bytes : {64 * kMiB, uint64_t{0}}) {
    ASSERT_TRUE(guest.vm().SetBalloon(bytes, Soon()));
    // How much the guest sees does not change: where it is short of memory, it takes it back.
    const Deadline deadline = Soon();
    Backoff backoff({.no_event = "BALLOON_CHANGE tells of each step, and the driver keeps none",
                     .first = std::chrono::milliseconds(2),
                     .longest = std::chrono::milliseconds(100)});
    while (guest.vm().GetSizes(Soon()).value().balloon_bytes != bytes) {
      ASSERT_TRUE(backoff.Sleep(deadline));
    }
  }
  EXPECT_EQ(guest.vm().GetSizes(Soon()).value().cpus, 1U);
}

TEST_F(QemuVmTest, AddsCpusAndTakesThemBack) {
  GuestVm guest([](VmConfig& config, QemuOptions&) { config.cpus.max = 2; });
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  const Status more = guest.vm().SetCpus(2, Soon());
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(guest.vm().GetSizes(Soon()).value().cpus, 2U);
  if (TestImage::Get().acceleration.accelerator == Accelerator::kTcg) {
    // Linux 6.12 counts places for CPUs only under a hypervisor that it knows, and TCG is none.
    GTEST_SKIP() << "QEMU has the CPU; the guest takes it under KVM alone";
  }
  guest.Await("has cpus 2");
  const Status fewer = guest.vm().SetCpus(1, Soon());
  ASSERT_TRUE(fewer) << fewer.error().message;
  guest.Await("lost cpus 2");
}

TEST_F(QemuVmTest, AddsMemory) {
  GuestVm guest([](VmConfig& config, QemuOptions&) {
    config.memory.max_bytes = config.memory.bytes + 256 * kMiB;
  });
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  const size_t before = guest.ConsoleSize();
  ASSERT_TRUE(guest.vm().SetMemory(512 * kMiB, Soon()));
  guest.Await("has memory", before);
  EXPECT_GT(guest.vm().GetSizes(Soon()).value().memory_bytes, 256 * kMiB);
}

TEST_F(QemuVmTest, ARestoredVmGoesOnWhereItsMemoryFileIs) {
  const os::TempDir place = os::TempDir::Create().value();
  const std::string memory = place.path() + "/memory";
  const Snapshot snapshot{.directory = place.path(), .memory = Snapshot::Memory::kInItsFile};
  const auto with_file = [&](VmConfig& config, QemuOptions&) {
    config.memory.backing = MemoryBacking::kFile;
    config.memory.file = memory;
  };
  {
    GuestVm guest(with_file);
    guest.Boot();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(guest.vm().Pause(Soon()));
    const Status taken = guest.vm().TakeSnapshot(snapshot, Soon());
    ASSERT_TRUE(taken) << taken.error().message;
  }
  GuestVm clone([&](VmConfig& config, QemuOptions& options) {
    with_file(config, options);
    config.from = snapshot;
  });
  clone.Start();
  ASSERT_FALSE(HasFatalFailure());
  const Status restored = clone.vm().Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(clone.vm().GetStatus(Soon()).value().state, RunState::kPaused);
  ASSERT_TRUE(clone.vm().Resume(Soon()));
  ExpectGoesOn(clone);
  // It has not booted.
  EXPECT_THAT(clone.Console(), Not(HasSubstr("ready")));
}

TEST_F(QemuVmTest, ARestoredVmHasItsSavedMemory) {
  const os::TempDir place = os::TempDir::Create().value();
  const Snapshot snapshot{.directory = place.path(), .memory = Snapshot::Memory::kSaved};
  {
    GuestVm guest;
    guest.Boot();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(guest.vm().Pause(Soon()));
    const Status taken = guest.vm().TakeSnapshot(snapshot, Soon());
    ASSERT_TRUE(taken) << taken.error().message;
  }
  for (int round = 0; round < 2; ++round) {
    GuestVm clone([&](VmConfig& config, QemuOptions&) { config.from = snapshot; });
    clone.Start();
    ASSERT_FALSE(HasFatalFailure());
    const Status restored = clone.vm().Restore(Soon());
    ASSERT_TRUE(restored) << restored.error().message;
    ASSERT_TRUE(clone.vm().Resume(Soon()));
    ExpectGoesOn(clone);
  }
}

TEST_F(QemuVmTest, SaysWhyASnapshotCannotBeRestored) {
  GuestVm clone(
      [&](VmConfig& config, QemuOptions&) { config.from = Snapshot{.directory = "/nowhere"}; });
  clone.Start();
  ASSERT_FALSE(HasFatalFailure());
  const Status restored = clone.vm().Restore(Soon());
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("/nowhere/state"));
}

TEST_F(QemuVmTest, AMicrovmBootsAndTakesADisk) {
  if (TestImage::Get().acceleration.accelerator == Accelerator::kTcg && HostTscKhz() == 0) {
    GTEST_SKIP() << "the host's clock is not known, which a microvm needs without KVM";
  }
  GuestVm guest([](VmConfig&, QemuOptions& options) { options.machine = QemuMachine::kMicrovm; });
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  const auto added = guest.vm().AddDisk(DiskIn(guest, "d1"), Soon());
  ASSERT_TRUE(added) << added.error().message;
  guest.Await("has disk d1");
  EXPECT_EQ(guest.vm().GetSizes(Soon()).value().cpus, 1U);
}

TEST_F(QemuVmTest, AKernelThatPanicsIsABootFailureWithItsLastWords) {
  GuestVm guest([](VmConfig& config, QemuOptions&) { config.cmdline = "+gantry.end=panic"; });
  guest.Start();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(guest.vm().Boot(Soon()));
  const VmEnd end = guest.AwaitEnd();
  EXPECT_EQ(end.cause, EndCause::kGuestPanic);
  EXPECT_THAT(end.words, HasSubstr("Attempted to kill init"));
  const Error error = BootFailure("QEMU", end, guest.folder() + "/console");
  EXPECT_THAT(error.message, HasSubstr("Kernel panic"));
}

TEST_F(QemuVmTest, TellsAPowerOffFromAReset) {
  for (const auto& [word, cause] :
       {std::pair("off", EndCause::kGuestShutdown), std::pair("reset", EndCause::kGuestReset)}) {
    GuestVm guest([&](VmConfig& config, QemuOptions&) {
      config.cmdline = std::string("+gantry.end=") + word;
    });
    guest.Start();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(guest.vm().Boot(Soon()));
    EXPECT_EQ(guest.AwaitEnd().cause, cause) << word;
  }
}

TEST_F(QemuVmTest, AKilledQemuIsToldAsSuch) {
  GuestVm guest;
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(guest.process().Signal(SIGKILL));
  EXPECT_EQ(guest.AwaitEnd().cause, EndCause::kSignal);
  const Status paused = guest.vm().Pause(std::chrono::steady_clock::now());
  ASSERT_FALSE(paused);
}

TEST_F(QemuVmTest, AnotherEngineFindsWhatTheOneBeforeHasAdded) {
  GuestVm guest;
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(guest.vm().AddDisk(DiskIn(guest, "d1"), Soon()));
  guest.Await("has disk d1");
  VmConfig config = GuestVm::ConfigIn(guest.folder(), "guest");
  guest.Disconnect();
  auto next = MakeQemu(std::move(config), {.control_socket = guest.folder() + "/control"}).value();
  ASSERT_TRUE(next->Connect(Soon(), &guest.process()));
  EXPECT_EQ(next->AddDisk(DiskIn(guest, "d1"), Soon()).error().code, Code::kAlreadyExists);
  const Status removed = next->RemoveDisk("d1", Soon());
  ASSERT_TRUE(removed) << removed.error().message;
  guest.Await("lost disk d1");
}

TEST_F(QemuVmTest, AQemuThatDoesNotStartIsNoticedAtOnce) {
  GuestVm guest([](VmConfig& config, QemuOptions&) { config.initrd = "/nowhere/initrd"; });
  guest.StartUnchecked();
  const Status connected = guest.vm().Connect(Soon(), &guest.process());
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kUnavailable);
  EXPECT_EQ(guest.AwaitEnd().cause, EndCause::kVmmFailed);
}

}  // namespace
}  // namespace gantry::vmm
