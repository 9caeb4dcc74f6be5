// SPDX-License-Identifier: Apache-2.0
//
// A machine as the backend makes it, with a real QEMU, gantry-vsock and the guest agent: started,
// found again by another engine, and ended from each of its ends.
#include "plugins/vmm/machine/machine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/os/fs.h"
#include "plugins/vmm/machine/canary.h"
#include "plugins/vmm/protocol/reports.h"
#include "tests/vmm/harness/guest_vm.h"
#include "tests/vmm/harness/test_image.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

Result<UniqueFd> OpenProgram(std::string_view name) {
  const char* const path = name == "gantry-vsock" ? GANTRY_VSOCK : GANTRY_KVM_CANARY;
  UniqueFd program(open(path, O_RDONLY | O_CLOEXEC));
  return program ? Result<UniqueFd>(std::move(program))
                 : Result<UniqueFd>(FailErrno(errno, "open '{}'", path));
}

class RealMachine : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "whoever gives processes users of their own is root";
    }
    const TestImage& image = TestImage::Get();
    ASSERT_EQ(image.why_not, "");
    ASSERT_EQ(chmod(folder_.path().c_str(), 0711), 0);
    means_.open_program = OpenProgram;
    means_.images = std::filesystem::path(image.kernel).parent_path();
    means_.accelerator = [&image](const VmmOptions& options, Deadline) {
      return Decide(options, image.acceleration);
    };
    request_.id = "pod-1";
    request_.options.directory = folder_.path() + "/v";
    request_.options.boot_timeout = std::chrono::minutes(3);
    request_.directory = request_.options.directory + "/pod";
    request_.size = StartSize(request_.options, SizeOfNode(), {});
    request_.set_up.hostname = "pod-1";
  }

  /// Disks and NICs are given once.
  MachineRequest Request() const {
    MachineRequest request;
    request.id = request_.id;
    request.options = request_.options;
    request.directory = request_.directory;
    request.size = request_.size;
    request.set_up = request_.set_up;
    return request;
  }

  MachineEvents Events() {
    MachineEvents events;
    events.ended = [this](const Error& why) {
      const std::lock_guard lock(mutex_);
      ends_.push_back(why.message);
      changed_.notify_all();
    };
    events.reconnected = [this] {
      const std::lock_guard lock(mutex_);
      ++reconnects_;
      changed_.notify_all();
    };
    return events;
  }

  std::unique_ptr<Machine> Start() {
    auto machine = Machine::Start(context_, means_, Request(), Events(), Soon());
    EXPECT_TRUE(machine) << machine.error().message;
    return machine ? std::move(*machine) : nullptr;
  }

  std::string WaitForEnd() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return !ends_.empty(); }));
    return ends_.empty() ? std::string() : ends_.front();
  }

  void ExpectNothingIsLeft() const {
    EXPECT_EQ(context_.Alive(), 0U);
    EXPECT_FALSE(mount::IsMountPoint(request_.directory + "/vm").value_or(true));
    EXPECT_FALSE(Exists(request_.directory));
    EXPECT_TRUE(ListDirectory(request_.options.directory + "/users")->empty());
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  FakeSandboxContext context_;
  MachineMeans means_;
  MachineRequest request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> ends_;
  size_t reconnects_ = 0;
};

TEST_F(RealMachine, StartsAsAUserOfItsOwnAndPowersOff) {
  const auto machine = Start();
  ASSERT_TRUE(machine);
  EXPECT_THAT(machine->agent(), HasSubstr("gantry-agent"));
  const std::string status =
      ReadFile(Format("/proc/{}/status", machine->process()->pid().value), 1 << 16).value_or("");
  EXPECT_THAT(status, AllOf(testing::Not(HasSubstr("Uid:\t0")),
                            HasSubstr("CapEff:\t0000000000000000"), HasSubstr("Seccomp:\t2")));
  const std::string root = Format("/proc/{}/root", machine->process()->pid().value);
  EXPECT_TRUE(Exists(root + "/usr/bin"));
  EXPECT_TRUE(Exists(root + request_.directory + "/vm/console"));
  for (const char* const kept_back :
       {"/etc/passwd", "/proc/self", "/sys/kernel", "/root", "/home"}) {
    EXPECT_FALSE(Exists(root + kept_back)) << kept_back;
  }
  const auto list = machine->Call(protocol::List(), Soon());
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_TRUE(list->containers.empty());
  EXPECT_TRUE(machine->Shutdown(std::chrono::minutes(3)));
  const auto ended = machine->process()->Ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->raw, 0) << "it was not killed: the guest has powered off";
  ExpectNothingIsLeft();
  EXPECT_TRUE(ends_.empty());
}

TEST_F(RealMachine, GetsDisksThatItsVmmMayNotOpenAndMemory) {
  const std::string file = folder_.path() + "/disk";
  ASSERT_TRUE(WriteFile(file, std::string(size_t{1} << 20, 'x'), 0600));
  const auto machine = Start();
  ASSERT_TRUE(machine);
  const auto disk = machine->hypervisor().AddDisk({.serial = "d1", .path = file}, Soon());
  ASSERT_TRUE(disk) << disk.error().message;
  const Status removed = machine->hypervisor().RemoveDisk("d1", Soon());
  EXPECT_TRUE(removed) << removed.error().message;
  const Status grown = machine->sizes().Set("c", {.memory_bytes = 128 * kMiB}, Soon());
  ASSERT_TRUE(grown) << grown.error().message;
  const auto sizes = machine->hypervisor().GetSizes(Soon());
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_GE(sizes->memory_bytes + sizes->balloon_bytes, 384 * kMiB);
  machine->sizes().Remove("c", Soon());
  EXPECT_TRUE(machine->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(RealMachine, IsFoundByTheNextEngineAndItsAgentDialsAgain) {
  auto machine = Start();
  ASSERT_TRUE(machine);
  const std::string blob = machine->Save();
  for (size_t i = 1; i <= 3; ++i) {
    machine.reset();
    context_.RestartEngine();
    auto again = Machine::Recover(context_, means_, Request(), blob, Events());
    ASSERT_TRUE(again) << again.error().message;
    machine = std::move(*again);
    const auto list = machine->Call(protocol::List(), Soon());
    EXPECT_TRUE(list) << list.error().message;
    const auto status = machine->hypervisor().GetStatus(Soon());
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(status->state, RunState::kRunning);
  }
  EXPECT_TRUE(machine->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

/// The tag of what is killed, and what is said then.
struct Killed {
  const char* tag;
  const char* words;
};

class RealMachineEnd : public RealMachine, public testing::WithParamInterface<Killed> {};

TEST_P(RealMachineEnd, OfAPartIsTheEndOfAll) {
  const auto machine = Start();
  ASSERT_TRUE(machine);
  ASSERT_TRUE(context_.SpawnedUnder(GetParam().tag)->Signal(SIGKILL));
  EXPECT_THAT(WaitForEnd(),
              AllOf(HasSubstr(GetParam().words), HasSubstr("signal 9"), HasSubstr("console")));
  EXPECT_EQ(context_.Alive(), 0U);
  const auto list = machine->Call(protocol::List(), Soon());
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, Code::kUnavailable);
  EXPECT_TRUE(machine->Shutdown(std::chrono::seconds(1)));
  ExpectNothingIsLeft();
  EXPECT_EQ(ends_.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Parts, RealMachineEnd,
                         testing::Values(Killed{"vmm", "QEMU was ended"},
                                         Killed{"vsock", "vsock device"}),
                         [](const auto& one) { return std::string(one.param.tag); });

TEST_F(RealMachine, AGuestThatPanicsSaysSoInTheError) {
  const std::string nothing = folder_.path() + "/initrd";
  // An archive without an init: the kernel finds no root either.
  ASSERT_TRUE(WriteFile(nothing, std::string(512, '\0'), 0644));
  request_.options.initrd = nothing;
  const auto machine = Machine::Start(context_, means_, Request(), Events(), Soon());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(machine.error().message, HasSubstr("panic"));
  ExpectNothingIsLeft();
}

TEST_F(RealMachine, AVmmThatRefusesSaysWhy) {
  request_.options.kernel = folder_.path() + "/kernel";
  ASSERT_TRUE(WriteFile(request_.options.kernel, "this is no kernel", 0644));
  const auto machine = Machine::Start(context_, means_, Request(), Events(), Soon());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(machine.error().message, AllOf(HasSubstr("QEMU"), HasSubstr("kernel")));
  ExpectNothingIsLeft();
}

/// Machines of the doubles of tests/vmm/doubles, which have a QEMU of their own behind them.
class DoubledMachine : public RealMachine, public testing::WithParamInterface<Vmm> {
 protected:
  void SetUp() override {
    RealMachine::SetUp();
    request_.options.vmm = GetParam();
    request_.options.accelerator = AcceleratorChoice::kTcg;
    request_.options.vmm_path =
        Format("{}/{}", GANTRY_DOUBLES, IsFirecracker() ? "firecracker" : "cloud-hypervisor");
    request_.size = StartSize(request_.options, SizeOfNode(), {});
  }

  static bool IsFirecracker() { return GetParam() == Vmm::kFirecracker; }
};

TEST_P(DoubledMachine, GetsDisksIsFoundAgainAndEndsItself) {
  const std::string file = folder_.path() + "/disk";
  ASSERT_TRUE(WriteFile(file, std::string(size_t{1} << 20, 'x'), 0600));
  auto machine = Start();
  ASSERT_TRUE(machine);
  const auto disk = machine->AddDisk({.serial = "d1", .path = file}, Soon());
  ASSERT_TRUE(disk) << disk.error().message;
  EXPECT_EQ(machine->AddDisk({.serial = "d1", .path = file}, Soon()).error().code,
            Code::kAlreadyExists);
  const std::string blob = machine->Save();
  machine.reset();
  context_.RestartEngine();
  auto again = Machine::Recover(context_, means_, Request(), blob, Events());
  ASSERT_TRUE(again) << again.error().message;
  machine = std::move(*again);
  const auto list = machine->Call(protocol::List(), Soon());
  EXPECT_TRUE(list) << list.error().message;
  const Status removed = machine->RemoveDisk("d1", Soon());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(machine->Shutdown(std::chrono::minutes(3)));
  const auto ended = machine->process()->Ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->raw, 0) << "it was not killed: the guest has ended it";
  ExpectNothingIsLeft();
  EXPECT_TRUE(ends_.empty());
}

TEST_P(DoubledMachine, EndsWithItsVmm) {
  const auto machine = Start();
  ASSERT_TRUE(machine);
  ASSERT_TRUE(context_.SpawnedUnder("vmm")->Signal(SIGKILL));
  EXPECT_THAT(WaitForEnd(), AllOf(HasSubstr(std::string(VmmName(GetParam()))),
                                  HasSubstr("signal 9"), HasSubstr("console")));
  EXPECT_TRUE(machine->Shutdown(std::chrono::seconds(1)));
  ExpectNothingIsLeft();
}

INSTANTIATE_TEST_SUITE_P(Vmms, DoubledMachine,
                         testing::Values(Vmm::kCloudHypervisor, Vmm::kFirecracker),
                         [](const auto& one) {
                           return one.param == Vmm::kFirecracker ? "Firecracker"
                                                                 : "CloudHypervisor";
                         });

}  // namespace
}  // namespace gantry::vmm
