// SPDX-License-Identifier: Apache-2.0
//
// The drivers of Cloud Hypervisor and Firecracker with real guests: doubles check their requests
// and do them to a QEMU behind them. One suite for both; where one has not what the other has,
// the test says what it answers.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/socket_io.h"
#include "tests/vmm/harness/tap.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class DoubledVm : public testing::TestWithParam<Vmm> {
 protected:
  using Change = std::function<void(VmConfig&)>;

  void SetUp() override {
    if (const auto& files = TestImage::Get(); !files.why_not.empty()) {
      GTEST_SKIP() << files.why_not;
    }
  }

  static bool IsFirecracker() { return GetParam() == Vmm::kFirecracker; }

  static GuestSettings Settings(const Change& change = {}) {
    GuestSettings settings;
    settings.vmm = GetParam();
    settings.change = [change](VmConfig& config, QemuOptions&) {
      if (change) {
        change(config);
      }
    };
    return settings;
  }

  static Disk DiskIn(const std::string& folder, const std::string& serial) {
    const std::string path = folder + "/" + serial + ".img";
    std::ofstream(path) << "x";
    std::filesystem::resize_file(path, size_t{1} << 20);
    return {.serial = serial, .path = path, .read_only = true};
  }

  static void ExpectGoesOn(GuestVm& guest) {
    const auto added = guest.vm().AddDisk(DiskIn(guest.folder(), "goeson"), Soon());
    ASSERT_TRUE(added) << added.error().message;
    guest.Await("has disk " + *added);
  }
};

TEST_P(DoubledVm, BootsPausesAndGoesOnAndIsKilled) {
  GuestVm guest(Settings());
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(guest.vm().GetStatus(Soon()).value().state, RunState::kRunning);
  ASSERT_TRUE(guest.vm().Pause(Soon()));
  EXPECT_EQ(guest.vm().GetStatus(Soon()).value().state, RunState::kPaused);
  ASSERT_TRUE(guest.vm().Resume(Soon()));
  ExpectGoesOn(guest);
  const Status killed = guest.vm().Kill(Soon());
  EXPECT_EQ(killed.has_value(), !IsFirecracker());
  if (IsFirecracker()) {
    ASSERT_TRUE(guest.process().Signal(SIGKILL));
  }
  EXPECT_EQ(guest.AwaitEnd().cause, IsFirecracker() ? EndCause::kSignal : EndCause::kGuestShutdown);
}

// The guest's serial is the one that AddDisk gives, whatever it is called here.
TEST_P(DoubledVm, AddsAndRemovesADisk) {
  const os::TempDir images = os::TempDir::Create().value();
  const Disk root = DiskIn(images.path(), "root");
  GuestVm guest(Settings([&](VmConfig& config) { config.disks.push_back(root); }));
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  guest.Await("has disk " + (IsFirecracker() ? FirecrackerSerial(root.path).value() : "root") +
              " read-only 1");
  for (int round = 0; round < 2; ++round) {
    const size_t from = guest.ConsoleSize();
    const auto added = guest.vm().AddDisk(DiskIn(guest.folder(), "d1"), Soon());
    ASSERT_TRUE(added) << added.error().message;
    guest.Await("has disk " + *added + " read-only 1", from);
    const Status removed = guest.vm().RemoveDisk("d1", Soon());
    ASSERT_TRUE(removed) << removed.error().message;
    guest.Await("lost disk " + *added, from);
  }
  EXPECT_FALSE(guest.vm().RemoveDisk("d1", Soon()));
  EXPECT_FALSE(guest.vm().AddDisk({.serial = "d2", .path = "/nowhere/d2"}, Soon()));
}

TEST_P(DoubledVm, AddsAndRemovesANic) {
  constexpr const char* kMac = "52:54:00:12:34:56";
  GuestVm guest(Settings());
  Nic nic;
  nic.id = "eth0";
  nic.mac = kMac;
  nic.mtu = 1400;
  nic.tap = MakeTap();
  if (!nic.tap) {
    GTEST_SKIP() << "no tap can be made here";
  }
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  if (IsFirecracker()) {
    // By its name; a descriptor is refused.
    EXPECT_EQ(guest.vm().AddNic(nic, Soon()).error().code, Code::kUnimplemented);
    nic.tap.reset();
    nic.tap_name = "gvmtfc0";
  }
  const Status added = guest.vm().AddNic(nic, Soon());
  ASSERT_TRUE(added) << added.error().message;
  guest.Await(std::string("has nic ") + kMac + " mtu 1400");
  const Status removed = guest.vm().RemoveNic("eth0", Soon());
  ASSERT_TRUE(removed) << removed.error().message;
  guest.Await(std::string("lost nic ") + kMac);
}

TEST_P(DoubledVm, GetsMemoryAndGivesItBack) {
  GuestVm guest(Settings([](VmConfig& config) {
    config.balloon = true;
    config.memory.max_bytes = config.memory.bytes + 256 * kMiB;
  }));
  guest.Boot();
  ASSERT_FALSE(HasFatalFailure());
  const size_t before = guest.ConsoleSize();
  const Status more = guest.vm().SetMemory(512 * kMiB, Soon());
  ASSERT_TRUE(more) << more.error().message;
  guest.Await("has memory", before);
  const Status fewer = guest.vm().SetBalloon(64 * kMiB, Soon());
  ASSERT_TRUE(fewer) << fewer.error().message;
  const auto sizes = guest.vm().GetSizes(Soon());
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->balloon_bytes, 64 * kMiB);
  EXPECT_EQ(sizes->cpus, 1U);
}

// Its console's place is in the snapshot: a clone writes to where the first one wrote.
TEST_P(DoubledVm, GoesOnFromASnapshot) {
  const os::TempDir place = os::TempDir::Create().value();
  const Snapshot snapshot{.directory = place.path(), .memory = Snapshot::Memory::kSaved};
  const std::string console = place.path() + "/console";
  {
    GuestVm guest(Settings([&](VmConfig& config) { config.console = console; }));
    guest.Boot();
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_FALSE(guest.vm().TakeSnapshot(snapshot, Soon())) << "it runs";
    ASSERT_TRUE(guest.vm().Pause(Soon()));
    const Status taken = guest.vm().TakeSnapshot(snapshot, Soon());
    ASSERT_TRUE(taken) << taken.error().message;
  }
  GuestVm clone(Settings([&](VmConfig& config) {
    config.console = console;
    config.from = snapshot;
  }));
  clone.Start();
  ASSERT_FALSE(HasFatalFailure());
  const Status restored = clone.vm().Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(clone.vm().GetStatus(Soon()).value().state, RunState::kPaused);
  ASSERT_TRUE(clone.vm().Resume(Soon()));
  ExpectGoesOn(clone);
}

TEST_P(DoubledVm, SaysWhatItsVmmSaysOfAKernelThatIsNone) {
  GuestVm guest(Settings([](VmConfig& config) { config.initrd = "/nowhere/initrd"; }));
  guest.Start();
  ASSERT_FALSE(HasFatalFailure());
  const Status booted = guest.vm().Boot(Soon());
  ASSERT_FALSE(booted);
  EXPECT_THAT(booted.error().message, HasSubstr(std::string(VmmName(GetParam()))));
}

// A guest ends its VMM in one way alone, and another one with each: see the heads of the doubles.
TEST_P(DoubledVm, EndsWithItsGuest) {
  GuestVm guest(Settings([](VmConfig& config) {
    config.cmdline = IsFirecracker() ? "+gantry.end=reset" : "+gantry.end=off";
  }));
  guest.Start();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(guest.vm().Boot(Soon()));
  EXPECT_EQ(guest.AwaitEnd().cause, EndCause::kGuestShutdown);
}

// Words, layout and user; what is in a jail is not booted here.
TEST(DoubledJailer, GivesFirecrackerAFolderAndAUserOfItsOwn) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "whoever gives processes users of their own is root";
  }
  const os::TempDir place = os::TempDir::Create().value();
  ASSERT_EQ(chmod(place.path().c_str(), 0711), 0);
  const Jailer jailer{.program = GANTRY_DOUBLES "/jailer",
                      .uid = 60'001,
                      .gid = 60'002,
                      .base = place.path() + "/jails",
                      .network_namespace = "/proc/self/ns/net"};
  const std::string program = GANTRY_DOUBLES "/firecracker";
  VmConfig config = GuestVm::ConfigIn("/run", "jailed");
  config.cmdline = "quiet";
  const auto vm = MakeFirecracker(std::move(config),
                                  {.program = program, .control_socket = "/api", .jailer = jailer})
                      .value();
  FakeSandboxContext context;
  SpawnRequest request = vm->Describe().value();
  request.fds.emplace_back(UniqueFd(dup(STDERR_FILENO)), STDERR_FILENO);
  const auto process = context.Spawn(std::move(request)).value();
  const Status connected = vm->Connect(Soon(), process.get());
  ASSERT_TRUE(connected) << connected.error().message;
  const Status configured = vm->Configure(Soon());
  EXPECT_TRUE(configured) << configured.error().message;
  struct stat root{};
  ASSERT_EQ(stat(JailRoot(jailer, program, "jailed").c_str(), &root), 0);
  EXPECT_EQ(root.st_uid, 60'001U);
  EXPECT_EQ(root.st_gid, 60'002U);
  struct stat runs{};
  ASSERT_EQ(stat(("/proc/" + std::to_string(process->pid().value)).c_str(), &runs), 0);
  EXPECT_EQ(runs.st_uid, 60'001U);
  ASSERT_TRUE(process->Signal(SIGKILL));
  EXPECT_TRUE(process->Wait(Left(Soon())));
}

INSTANTIATE_TEST_SUITE_P(Vmms, DoubledVm, testing::Values(Vmm::kCloudHypervisor, Vmm::kFirecracker),
                         [](const auto& one) {
                           return one.param == Vmm::kFirecracker ? "Firecracker"
                                                                 : "CloudHypervisor";
                         });

}  // namespace
}  // namespace gantry::vmm
