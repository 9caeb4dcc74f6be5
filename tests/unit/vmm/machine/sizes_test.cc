// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/sizes.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/messages.h"
#include "tests/unit/vmm/machine/deadlines.h"
#include "tests/unit/vmm/machine/idle_vm.h"

namespace gantry::vmm {
namespace {

constexpr uint64_t kGiB = 1024 * kMiB;

Deadline AtOnce() { return In(std::chrono::milliseconds(30)); }

/// A VM whose guest takes what the test lets it take.
class SizedVm : public IdleVm {
 public:
  explicit SizedVm(Vmm vmm = Vmm::kQemu) : vmm_(vmm) {}

  Vmm vmm() const override { return vmm_; }

  Result<VmSizes> GetSizes(Deadline) override {
    // What is in the balloon was taken by the guest, too.
    return VmSizes{.cpus = cpus,
                   .memory_bytes = std::min(memory, most_memory) - balloon,
                   .balloon_bytes = balloon};
  }

  Status SetCpus(uint32_t count, Deadline) override {
    if (refuses_cpus) {
      return Fail(Code::kInternal, "no more CPUs");
    }
    cpus = count;
    return {};
  }

  Status SetMemory(uint64_t bytes, Deadline) override {
    memory = bytes;
    return {};
  }

  uint32_t cpus = 1;
  uint64_t memory = 256 * kMiB;
  uint64_t most_memory = UINT64_MAX;
  uint64_t balloon = 0;
  bool refuses_cpus = false;

 private:
  const Vmm vmm_;
};

/// An agent that switches on what there is.
class OnlineGuest : public GuestCalls {
 public:
  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline) override {
    EXPECT_EQ(kind, protocol::Kind::kOnline);
    const auto online = DecodeProto<protocol::Online>(body).value();
    asked.push_back(online.cpus);
    if (online.cpus > takes) {
      return Fail(Code::kDeadlineExceeded, "there are {}", takes);
    }
    return EncodeProto(protocol::OnlineAnswer{.cpus = online.cpus});
  }

  Status PostBytes(protocol::Kind, std::string, std::function<void(Result<std::string>)>) override {
    std::abort();
  }

  StreamListener& streams() override { std::abort(); }

  std::shared_ptr<HostProcess> process() const override { return nullptr; }

  uint32_t takes = UINT32_MAX;
  std::vector<uint32_t> asked;
};

class SizesTest : public testing::Test {
 protected:
  static constexpr MachineSize kStart = {
      .cpus = 1, .max_cpus = 4, .memory_bytes = 256 * kMiB, .max_memory_bytes = 2 * kGiB};

  SizedVm vm_;
  OnlineGuest guest_;
  Sizes sizes_{guest_, vm_, kStart};
};

TEST(SizeOf, TakesNoLimitForNone) {
  EXPECT_EQ(SizeOf(-1, 100'000, -1), ContainerSize());
  EXPECT_EQ(SizeOf(0, 0, 0), ContainerSize());
  EXPECT_EQ(SizeOf(0, 0, INT64_MAX).memory_bytes, 0U) << "what cgroup v1 says for none";
  EXPECT_EQ(SizeOf(INT64_MAX, 1, 0).milli_cpus, uint64_t{kMaxCpus} * 1000);
  EXPECT_EQ(SizeOf(150'000, 100'000, 0).milli_cpus, 1500U);
  EXPECT_EQ(SizeOf(50'000, 0, 0).milli_cpus, 500U) << "the kernel's own period";
  EXPECT_EQ(SizeOf(0, 0, 64 * 1024 * 1024).memory_bytes, 64 * kMiB);
}

TEST(StartSize, IsTheOptionsAndGrowsToTheNode) {
  const NodeSize node = {.cpus = 8, .memory_bytes = 4 * kGiB + 123};
  const MachineSize size =
      StartSize({.cpus = 2, .memory_mib = 300}, node, {.milli_cpus = 3000, .memory_bytes = kGiB});
  EXPECT_EQ(size.cpus, 2U);
  EXPECT_EQ(size.max_cpus, 8U);
  EXPECT_EQ(size.memory_bytes, 300 * kMiB);
  EXPECT_EQ(size.max_memory_bytes, 4 * kGiB) << "by whole blocks";
}

TEST(StartSize, OfAVmThatTakesNoCpusLaterHasThePods) {
  const NodeSize node = {.cpus = 4, .memory_bytes = 4 * kGiB};
  const VmmOptions microvm = {.machine = QemuMachine::kMicrovm, .cpus = 1};
  EXPECT_EQ(StartSize(microvm, node, {.milli_cpus = 1500}).cpus, 3U);
  EXPECT_EQ(StartSize(microvm, node, {.milli_cpus = 1500}).max_cpus, 3U);
  EXPECT_EQ(StartSize(microvm, node, {.milli_cpus = 90'000}).cpus, 4U);
}

TEST(StartSize, IsNeverAboveItsMaximum) {
  const MachineSize size = StartSize({.cpus = 4, .memory_mib = 1024},
                                     {.cpus = 2, .memory_bytes = 512 * kMiB}, ContainerSize());
  EXPECT_EQ(size.max_cpus, 4U);
  EXPECT_EQ(size.max_memory_bytes, size.memory_bytes);
}

TEST_F(SizesTest, GrowWithContainersAndShrinkAgain) {
  ASSERT_TRUE(sizes_.Set("a", {.milli_cpus = 500, .memory_bytes = 100 * kMiB + 1}, Soon()));
  EXPECT_EQ(vm_.cpus, 2U);
  EXPECT_EQ(vm_.memory, 358 * kMiB);
  ASSERT_TRUE(sizes_.Set("b", {.milli_cpus = 500, .memory_bytes = 0}, Soon()));
  EXPECT_EQ(vm_.cpus, 2U) << "two halves are one";
  EXPECT_THAT(guest_.asked, testing::ElementsAre(2U)) << "nothing was added for the second";
  sizes_.Remove("a", Soon());
  sizes_.Remove("b", Soon());
  sizes_.Remove("b", Soon());
  EXPECT_EQ(vm_.cpus, 1U);
  EXPECT_EQ(vm_.memory, 256 * kMiB);
}

TEST_F(SizesTest, OtherLimitsTakeThePlaceOfThoseBefore) {
  ASSERT_TRUE(sizes_.Set("a", {.memory_bytes = 512 * kMiB}, Soon()));
  ASSERT_TRUE(sizes_.Set("a", {.memory_bytes = 64 * kMiB}, Soon()));
  EXPECT_EQ(vm_.memory, 320 * kMiB);
}

TEST_F(SizesTest, StayBelowTheirMaximum) {
  ASSERT_TRUE(sizes_.Set("a", {.milli_cpus = 64'000, .memory_bytes = 100 * kGiB}, Soon()))
      << "limits may add up to more than a node has";
  EXPECT_EQ(vm_.cpus, 4U);
  EXPECT_EQ(vm_.memory, 2 * kGiB);
}

TEST_F(SizesTest, AreAsBeforeWhereTheGuestDoesNotTakeTheMemory) {
  ASSERT_TRUE(sizes_.Set("a", {.memory_bytes = 64 * kMiB}, Soon()));
  vm_.most_memory = 400 * kMiB;
  const Status refused = sizes_.Set("b", {.memory_bytes = kGiB}, AtOnce());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_EQ(vm_.memory, 320 * kMiB);
  sizes_.Remove("b", Soon());
  ASSERT_TRUE(sizes_.Set("c", {.memory_bytes = 64 * kMiB}, Soon()));
  EXPECT_EQ(vm_.memory, 384 * kMiB) << "nothing of b counts";
}

TEST_F(SizesTest, AHundredContainersThatFailLeaveNothing) {
  vm_.refuses_cpus = true;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(
        sizes_.Set(std::to_string(i), {.milli_cpus = 1000, .memory_bytes = 10 * kMiB}, Soon()));
  }
  EXPECT_EQ(vm_.memory, 256 * kMiB);
  vm_.refuses_cpus = false;
  ASSERT_TRUE(sizes_.Set("101st", {.milli_cpus = 1000}, Soon()));
  EXPECT_EQ(vm_.cpus, 2U);
}

TEST_F(SizesTest, MemoryThatIsInTheBalloonWasTaken) {
  vm_.balloon = 100 * kMiB;
  EXPECT_TRUE(sizes_.Set("a", {.memory_bytes = 64 * kMiB}, AtOnce()));
}

TEST_F(SizesTest, AGuestThatTakesNoCpusIsWaitedForOnce) {
  guest_.takes = 1;
  EXPECT_TRUE(sizes_.Set("a", {.milli_cpus = 1000}, Soon())) << "what there is is shared";
  EXPECT_TRUE(sizes_.Set("b", {.milli_cpus = 1000, .memory_bytes = kMiB}, Soon()));
  EXPECT_THAT(guest_.asked, testing::ElementsAre(2U, 0U));
  EXPECT_EQ(vm_.cpus, 2U) << "no more are offered to it";
}

TEST_F(SizesTest, OfAnEngineBeforeAreTakenUp) {
  vm_.memory = 320 * kMiB;
  sizes_.Know("a", {.memory_bytes = 64 * kMiB});
  EXPECT_TRUE(guest_.asked.empty());
  sizes_.Remove("a", Soon());
  EXPECT_EQ(vm_.memory, 256 * kMiB);
}

TEST(SizesOf, FirecrackerGrowByItsBlocks) {
  SizedVm vm(Vmm::kFirecracker);
  OnlineGuest guest;
  Sizes sizes(guest, vm,
              {.cpus = 1, .max_cpus = 1, .memory_bytes = 256 * kMiB, .max_memory_bytes = kGiB});
  ASSERT_TRUE(sizes.Set("a", {.memory_bytes = kMiB}, Soon()));
  EXPECT_EQ(vm.memory, 384 * kMiB);
}

}  // namespace
}  // namespace gantry::vmm
