// SPDX-License-Identifier: Apache-2.0
//
// Queues that lie. Each of these breaks the device for its own guest, whose streams end; a driver
// that starts anew has it back.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "plugins/vmm/vsock/virtqueue.h"
#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

constexpr size_t kSend = GuestDriver::kSendRing;
constexpr size_t kReceive = GuestDriver::kReceiveRing;
constexpr uint64_t kBase = GuestDriver::kGuestBase;
constexpr uint16_t kContinues = 1;
constexpr uint16_t kForWriting = 2;
constexpr uint16_t kIndirect = 4;

class VsockQueue : public VsockTest {
 protected:
  void SetUp() override {
    Boot();
    listener_ = Listen(1025);
    auto [socket, end] = DialOut(listener_, 1025);
    socket_ = socket;
    end_ = std::move(end);
  }

  void Put(uint16_t head) {
    driver_->Offer(kSend, head);
    driver_->Kick(1);
    Settle();
  }

  void ExpectBroken() {
    EXPECT_FALSE(server_->device().is_running());
    EXPECT_EQ(server_->device().streams(), 0U);
    EXPECT_TRUE(end_.Read().empty() && end_.ended());
    // The front end is answered all the same.
    EXPECT_TRUE(driver_->StopQueue(0));
    EXPECT_TRUE(driver_->StopQueue(1));
  }

  UniqueFd listener_;
  GuestSocket* socket_ = nullptr;
  HostEnd end_;
};

TEST_F(VsockQueue, AHeadThatIsNoDescriptor) {
  Put(GuestDriver::kQueueSize);
  ExpectBroken();
}

TEST_F(VsockQueue, ANextThatIsNoDescriptor) {
  driver_->WriteDescriptor(kSend, 100, kBase, 44, kContinues, 4000);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, ACircle) {
  driver_->WriteDescriptor(kSend, 100, kBase, 0, kContinues, 101);
  driver_->WriteDescriptor(kSend, 101, kBase, 0, kContinues, 100);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, ACircleWithBytes) {
  driver_->WriteDescriptor(kSend, 100, kBase, 1, kContinues, 100);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, AnAddressOutsideOfTheMemory) {
  for (const uint64_t address : {uint64_t{0}, kBase - 1, kBase + GuestDriver::kMemoryBytes,
                                 uint64_t{UINT64_MAX}, GuestDriver::kFrontEndBase}) {
    dir_ = *os::TempDir::Create();
    Boot();
    driver_->WriteDescriptor(kSend, 100, address, 44, 0, 0);
    Put(100);
    EXPECT_FALSE(server_->device().is_running()) << address;
  }
}

TEST_F(VsockQueue, ALengthThatLeavesTheMemory) {
  driver_->WriteDescriptor(kSend, 100, kBase + GuestDriver::kMemoryBytes - 43, 44, 0, 0);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, ALengthBeyondAllBounds) {
  driver_->WriteDescriptor(kSend, 100, kBase, UINT32_MAX, 0, 0);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, AnIndirectDescriptor) {
  driver_->WriteDescriptor(kSend, 100, kBase, 64, kIndirect, 0);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, APacketThatIsToBeWritten) {
  driver_->WriteDescriptor(kSend, 100, kBase, 64, kForWriting, 0);
  Put(100);
  ExpectBroken();
}

TEST_F(VsockQueue, MoreThanTheQueueHolds) {
  uint16_t& available = driver_->Word(kSend + GuestDriver::kPage + 2);
  available = static_cast<uint16_t>(available + GuestDriver::kQueueSize + 1);
  driver_->Kick(1);
  Settle();
  ExpectBroken();
}

TEST_F(VsockQueue, ABufferThatIsToBeRead) {
  driver_->WriteDescriptor(kReceive, 5, kBase, 4140, 0, 0);
  driver_->Offer(kReceive, 5);
  for (int i = 0; i < 200 && server_->device().is_running(); ++i) {
    end_.Write("x");
    Step();
  }
  ExpectBroken();
}

TEST_F(VsockQueue, ABufferWithoutRoom) {
  for (uint16_t i = 0; i < GuestDriver::kQueueSize; ++i) {
    driver_->WriteDescriptor(kReceive, i, kBase + GuestDriver::kReceiveBuffers, 44, kForWriting, 0);
  }
  end_.Write("x");
  for (int i = 0; i < 200 && server_->device().is_running(); ++i) {
    Turn();
  }
  ExpectBroken();
}

TEST_F(VsockQueue, ADriverThatStartsAnewIsServed) {
  Put(GuestDriver::kQueueSize);
  ASSERT_FALSE(server_->device().is_running());
  ASSERT_TRUE(driver_->Order(Request::kResetDevice, {}));
  driver_->Restart();
  guest_.emplace(*driver_);
  ASSERT_TRUE(driver_->Bring());
  auto [socket, end] = DialOut(listener_, 1025);
  ExpectCarries(*socket, end);
}

/// By itself: what goes in, and what comes out.
class Queue : public testing::Test {
 protected:
  static constexpr size_t kPieces = Virtqueue::kMaxPieces;

  /// A chain of so many descriptors of one byte each.
  void Chains(GuestDriver& driver, uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) {
      driver.WriteDescriptor(kSend, i, kBase + i, 1, i + 1 < count ? kContinues : uint16_t{0},
                             static_cast<uint16_t>(i + 1));
    }
    driver.Offer(kSend, 0);
  }

  Virtqueue::Next Pop(uint16_t descriptors, size_t room) {
    GuestDriver driver(UniqueFd(), {}, [] {});
    Chains(driver, descriptors);
    GuestMemory memory;
    const MemoryRegion region{.guest_address = kBase,
                              .size = GuestDriver::kMemoryBytes,
                              .front_end_address = GuestDriver::kFrontEndBase};
    std::vector<UniqueFd> files;
    files.emplace_back(dup(driver.memory_file()));
    EXPECT_TRUE(memory.Map(std::span(&region, 1), files));
    Virtqueue queue;
    EXPECT_TRUE(queue.Start(memory,
                            {.size = GuestDriver::kQueueSize,
                             .descriptors = GuestDriver::kFrontEndBase + kSend,
                             .available = GuestDriver::kFrontEndBase + kSend + GuestDriver::kPage,
                             .used = GuestDriver::kFrontEndBase + kSend + 2 * GuestDriver::kPage},
                            0, Virtqueue::Access::kRead, true));
    std::vector<iovec> pieces(room);
    Chain chain;
    const Virtqueue::Next next = queue.Pop(pieces, chain);
    if (next == Virtqueue::Next::kChain) {
      EXPECT_EQ(chain.bytes, descriptors);
      EXPECT_EQ(chain.pieces, descriptors);
    }
    return next;
  }
};

TEST_F(Queue, HasChainsOfManyPieces) { EXPECT_EQ(Pop(kPieces, kPieces), Virtqueue::Next::kChain); }

TEST_F(Queue, BreaksByChainsOfTooMany) {
  EXPECT_EQ(Pop(kPieces + 1, 2 * kPieces), Virtqueue::Next::kBroken);
  EXPECT_EQ(Pop(GuestDriver::kQueueSize, kPieces), Virtqueue::Next::kBroken);
}

TEST_F(Queue, KeepsWhatDoesNotFitForLater) { EXPECT_EQ(Pop(8, 7), Virtqueue::Next::kEmpty); }

}  // namespace
}  // namespace gantry::vmm::vsock
