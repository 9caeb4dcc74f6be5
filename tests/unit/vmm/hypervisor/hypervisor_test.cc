// SPDX-License-Identifier: Apache-2.0
//
// What each driver owes, whatever its VMM is: one suite against all three.
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/hypervisor/rigs.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Kind {
  const char* name;
  std::unique_ptr<Rig> (*make)(VmConfig config);
};

class HypervisorTest : public testing::TestWithParam<Kind> {
 protected:
  Hypervisor& Start(VmConfig config = SmallVm()) {
    rig_ = GetParam().make(std::move(config));
    EXPECT_TRUE(rig_->vm().Connect(Soon(), nullptr));
    return rig_->vm();
  }

  Hypervisor& Run(VmConfig config = SmallVm()) {
    Hypervisor& vm = Start(std::move(config));
    EXPECT_TRUE(vm.Configure(Soon()));
    EXPECT_TRUE(vm.Boot(Soon()));
    return vm;
  }

  RunState StateNow() {
    const auto status = rig_->vm().GetStatus(Soon());
    EXPECT_TRUE(status) << status.error().message;
    return status ? status->state : RunState::kEnded;
  }

  /// There, as the VMM sees it.
  Disk SomeDisk() const { return {.serial = "d1", .path = "/proc/self/exe", .read_only = true}; }

  std::unique_ptr<Rig> rig_;
};

TEST_P(HypervisorTest, GoesThroughTheLifeOfAVm) {
  Hypervisor& vm = Start();
  EXPECT_EQ(StateNow(), RunState::kPrepared);
  ASSERT_TRUE(vm.Configure(Soon()));
  EXPECT_EQ(StateNow(), RunState::kPrepared);
  ASSERT_TRUE(vm.Boot(Soon()));
  EXPECT_EQ(StateNow(), RunState::kRunning);
  ASSERT_TRUE(vm.Pause(Soon()));
  EXPECT_EQ(StateNow(), RunState::kPaused);
  ASSERT_TRUE(vm.Resume(Soon()));
  EXPECT_EQ(StateNow(), RunState::kRunning);
  EXPECT_TRUE(vm.Stop(Soon()));
}

TEST_P(HypervisorTest, ConnectsAgainToAVmThatRuns) {
  Hypervisor& vm = Run();
  EXPECT_TRUE(vm.Connect(Soon(), nullptr));
  EXPECT_EQ(StateNow(), RunState::kRunning);
}

TEST_P(HypervisorTest, AddsAndRemovesADiskBySerial) {
  Hypervisor& vm = Run();
  const auto seen = vm.AddDisk(SomeDisk(), Soon());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_THAT(rig_->Devices(), Contains(HasSubstr("d1")));
  const Status removed = vm.RemoveDisk("d1", Soon());
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(rig_->Devices(), Not(Contains(HasSubstr("d1"))));
}

TEST_P(HypervisorTest, SaysThatADiskIsNotThere) {
  Hypervisor& vm = Run();
  const Status removed = vm.RemoveDisk("d2", Soon());
  ASSERT_FALSE(removed);
  EXPECT_TRUE(removed.error().code == Code::kNotFound ||
              removed.error().code == Code::kFailedPrecondition);
  EXPECT_THAT(removed.error().message, HasSubstr(std::string(VmmName(vm.vmm()))));
}

TEST_P(HypervisorTest, RefusesAWordThatCannotGoIntoAPath) {
  Hypervisor& vm = Run();
  const auto added = vm.AddDisk({.serial = "a/../b", .path = "/x", .read_only = true}, Soon());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::kInvalidArgument);
}

TEST_P(HypervisorTest, NeedsABalloonToTakeMemory) {
  Hypervisor& without = Run();
  const Status refused = without.SetBalloon(32 * kMiB, Soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
  VmConfig config = SmallVm();
  config.balloon = true;
  Hypervisor& with = Run(std::move(config));
  EXPECT_TRUE(with.SetBalloon(32 * kMiB, Soon()));
  const auto sizes = with.GetSizes(Soon());
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->balloon_bytes, 32 * kMiB);
  EXPECT_EQ(sizes->cpus, 1U);
}

TEST_P(HypervisorTest, AddsMemoryWhereItMay) {
  VmConfig config = SmallVm();
  config.memory.max_bytes = 512 * kMiB;
  Hypervisor& vm = Run(std::move(config));
  ASSERT_TRUE(vm.traits().memory);
  const Status more = vm.SetMemory(384 * kMiB, Soon());
  ASSERT_TRUE(more) << more.error().message;
  const auto sizes = vm.GetSizes(Soon());
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->memory_bytes, 384 * kMiB);
}

TEST_P(HypervisorTest, NamesVmmAndOperationOfWhatItHasNot) {
  Hypervisor& vm = Run();
  const Status more = vm.SetMemory(384 * kMiB, Soon());
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kUnimplemented);
  EXPECT_THAT(more.error().message,
              HasSubstr(std::string(VmmName(vm.vmm())) + " cannot add memory"));
  const Status cpus = vm.SetCpus(2, Soon());
  ASSERT_FALSE(cpus);
  EXPECT_EQ(cpus.error().code, Code::kUnimplemented);
}

TEST_P(HypervisorTest, SnapshotsAndRestores) {
  {
    Hypervisor& vm = Run();
    ASSERT_TRUE(vm.Pause(Soon()));
    const Status taken = vm.TakeSnapshot({.directory = rig_->folder()}, Soon());
    ASSERT_TRUE(taken) << taken.error().message;
  }
  VmConfig config = SmallVm();
  config.from = Snapshot{.directory = "/templates/1"};
  Hypervisor& vm = Start(std::move(config));
  ASSERT_TRUE(vm.Configure(Soon()));
  const Status booted = vm.Boot(Soon());
  ASSERT_FALSE(booted);
  EXPECT_EQ(booted.error().code, Code::kFailedPrecondition);
  const Status restored = vm.Restore(Soon());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(StateNow(), RunState::kPaused);
  ASSERT_TRUE(vm.Resume(Soon()));
  EXPECT_EQ(StateNow(), RunState::kRunning);
}

TEST_P(HypervisorTest, RestoresNoVmWithoutASnapshot) {
  const Status restored = Start().Restore(Soon());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Code::kFailedPrecondition);
}

TEST_P(HypervisorTest, SaysThatTheVmmHasNotAnsweredInTime) {
  Hypervisor& vm = Run();
  rig_->HangNextPause();
  const Status paused = vm.Pause(AtOnce());
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(paused.error().message, HasSubstr(std::string(VmmName(vm.vmm()))));
  // It may have taken effect, and has. The next request is answered for itself.
  EXPECT_EQ(StateNow(), RunState::kPaused);
}

TEST_P(HypervisorTest, SaysThatTheVmmHasLeft) {
  Hypervisor& vm = Run();
  rig_->DropNextPause();
  const Status paused = vm.Pause(Soon());
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, Code::kUnavailable);
  EXPECT_THAT(paused.error().message, HasSubstr("left before it had answered"));
  EXPECT_EQ(StateNow(), RunState::kPaused);
}

TEST_P(HypervisorTest, TakesNoGarbageForAnAnswer) {
  Hypervisor& vm = Run();
  rig_->GarbageForNextPause();
  const Status paused = vm.Pause(Soon());
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, Code::kDataLoss);
  EXPECT_EQ(StateNow(), RunState::kPaused);
}

TEST_P(HypervisorTest, FindsNobodyAtTheSocketWhenTheVmmIsGone) {
  auto rig = GetParam().make(SmallVm());
  // Of one whose VMM was never started.
  VmConfig config = SmallVm();
  const std::string nowhere = rig->folder() + "/nowhere";
  std::unique_ptr<Hypervisor> vm;
  switch (rig->vm().vmm()) {
    case Vmm::kQemu:
      vm = MakeQemu(std::move(config), {.control_socket = nowhere}).value();
      break;
    case Vmm::kCloudHypervisor:
      vm = MakeCloudHypervisor(std::move(config), {.control_socket = nowhere}).value();
      break;
    case Vmm::kFirecracker:
      vm = MakeFirecracker(std::move(config), {.control_socket = nowhere}).value();
      break;
  }
  const Status connected = vm->Connect(AtOnce(), nullptr);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(connected.error().message, HasSubstr(nowhere));
}

TEST_P(HypervisorTest, ServesManyAtOnce) {
  Hypervisor& vm = Run();
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 25; ++round) {
        failed += vm.Pause(Soon()).has_value() || vm.GetStatus(Soon()) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failed, 0);
}

TEST_P(HypervisorTest, TellsByTheStatusHowItEnded) {
  Hypervisor& vm = Start();
  WaitStatus status;
  status.raw = SIGKILL;
  const VmEnd killed = vm.Ended(status);
  EXPECT_EQ(killed.cause, EndCause::kSignal);
  EXPECT_THAT(killed.words, HasSubstr("signal 9"));
  status.raw = W_EXITCODE(1, 0);
  EXPECT_EQ(vm.Ended(status).cause, EndCause::kVmmFailed);
}

INSTANTIATE_TEST_SUITE_P(All, HypervisorTest,
                         testing::Values(Kind{"Qemu", QemuRig},
                                         Kind{"CloudHypervisor", CloudHypervisorRig},
                                         Kind{"Firecracker", FirecrackerRig}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace gantry::vmm
