// SPDX-License-Identifier: Apache-2.0
//
// Who does not read holds up nobody but who writes to him, and nothing grows.
#include <string>

#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

class VsockCredit : public VsockTest {
 protected:
  void Connect(DriverSettings driver = {}) {
    Boot(driver);
    listener_ = Listen(1025);
    auto [socket, end] = DialOut(listener_, 1025);
    socket_ = socket;
    end_ = std::move(end);
  }

  /// As much as the guest can before it is blocked.
  size_t Fill(GuestSocket& socket, std::string_view data) {
    size_t written = 0;
    for (int i = 0; i < 20; ++i) {
      written += guest_->Write(socket, data.substr(written));
      Settle();
    }
    return written;
  }

  UniqueFd listener_;
  GuestSocket* socket_ = nullptr;
  HostEnd end_;
};

TEST_F(VsockCredit, AGuestIsBlockedWhileTheHostDoesNotRead) {
  Connect();
  const std::string data = Pattern(4 << 20);
  const size_t written = Fill(*socket_, data);
  // The window, and what the host's socket holds.
  EXPECT_GE(written, kLargeWindow);
  EXPECT_LT(written, kLargeWindow + (1 << 20));
  EXPECT_EQ(socket_->Credit(), 0U);

  auto [other, other_end] = DialOut(listener_, 1025);
  EXPECT_TRUE(ToHost(*other, other_end, data) == data);

  std::string_view left = std::string_view(data).substr(written);
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    left.remove_prefix(guest_->Write(*socket_, left));
    arrived += end_.Read();
    return arrived.size() == data.size();
  }));
  EXPECT_TRUE(arrived == data);
}

TEST_F(VsockCredit, AHostIsBlockedWhileTheGuestDoesNotRead) {
  Connect();
  const std::string data = Pattern(4 << 20);
  size_t written = 0;
  for (int i = 0; i < 20; ++i) {
    written += end_.Write(std::string_view(data).substr(written));
    Settle();
  }
  EXPECT_EQ(socket_->received.size(), socket_->window);
  EXPECT_LT(written, data.size());
  // It is asked for credit once, not again and again.
  EXPECT_EQ(socket_->got[PacketOp::kCreditRequest], 1);

  auto [other, other_end] = DialOut(listener_, 1025);
  EXPECT_TRUE(ToGuest(other_end, *other, data) == data);

  std::string_view left = std::string_view(data).substr(written);
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    left.remove_prefix(left.empty() ? 0 : end_.Write(left));
    arrived += guest_->Read(*socket_);
    return arrived.size() == data.size();
  }));
  EXPECT_TRUE(arrived == data);
}

TEST_F(VsockCredit, AGuestThatTakesMoreThanItHasIsReset) {
  Connect();
  const std::string data = Pattern(4 << 20);
  Fill(*socket_, data);
  guest_->Say(*socket_, PacketOp::kData, 0, "one more");
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  EXPECT_TRUE(Eventually([&] { return end_.Read().empty() && end_.ended(); }));
}

TEST_F(VsockCredit, AGuestThatLiesAboutItsOwnGetsNothing) {
  Connect();
  socket_->taken = 0x80000000;
  guest_->Say(*socket_, PacketOp::kCreditUpdate);
  Turn();
  end_.Write("data");
  Settle();
  EXPECT_EQ(socket_->received, "");
  socket_->taken = 0;
  guest_->Say(*socket_, PacketOp::kCreditUpdate);
  EXPECT_TRUE(Eventually([&] { return socket_->received == "data"; }));
}

TEST_F(VsockCredit, ARequestForCreditIsAnswered) {
  Connect();
  guest_->Say(*socket_, PacketOp::kCreditRequest);
  EXPECT_TRUE(Eventually([&] { return socket_->got[PacketOp::kCreditUpdate] == 1; }));
}

TEST_F(VsockCredit, LaterStreamsHaveSmallWindows) {
  Boot();
  listener_ = Listen(1025);
  std::vector<std::pair<GuestSocket*, HostEnd>> all;
  for (size_t i = 0; i < kLargeWindows + 1; ++i) {
    all.push_back(DialOut(listener_, 1025));
  }
  EXPECT_EQ(all.front().first->host_window, kLargeWindow);
  EXPECT_EQ(all.back().first->host_window, kSmallWindow);
  const std::string data = Pattern(1 << 20);
  EXPECT_TRUE(ToHost(*all.back().first, all.back().second, data) == data);
}

TEST_F(VsockCredit, StreamsTakeTurns) {
  Connect({.buffers = 16});
  auto [other, other_end] = DialOut(listener_, 1025);
  auto [small, small_end] = DialOut(listener_, 1025);
  const std::string much = Pattern(64 * 1024);
  const auto go_on = [&, &other_socket = *other, &other_host = other_end] {
    end_.Write(much);
    other_host.Write(much);
    Step();
    guest_->Read(*socket_);
    guest_->Read(other_socket);
  };
  for (int i = 0; i < 20; ++i) {
    go_on();
  }
  guest_->arrivals().clear();
  small_end.Write("small");
  for (int i = 0; i < 20; ++i) {
    go_on();
  }
  EXPECT_EQ(small->received, "small");
  size_t before = 0;
  for (const auto& [port, size] : guest_->arrivals()) {
    if (port == small->ports.guest) {
      break;
    }
    before += size;
  }
  // A turn of each of the others.
  EXPECT_LE(before, 2U * 64 * 1024);
}

TEST_F(VsockCredit, WithoutBuffersOfTheGuestsNothingIsLost) {
  Connect({.buffers = 4});
  driver_->set_keeps_buffers(true);
  const std::string data = Pattern(100 * 1024);
  ASSERT_EQ(end_.Write(data), data.size());
  Settle();
  EXPECT_LT(socket_->received.size(), data.size());
  // What is for the host goes on.
  EXPECT_EQ(guest_->Write(*socket_, "up"), 2U);
  Settle();
  EXPECT_EQ(end_.Read(), "up");
  EXPECT_TRUE(Eventually([&] {
    driver_->GiveKept();
    return socket_->received.size() == data.size();
  }));
  EXPECT_TRUE(socket_->received == data);
}

TEST_F(VsockCredit, AGuestIsInterruptedOnceForATurn) {
  Connect();
  driver_->TakeInterrupts(0);
  const std::string data = Pattern(40 * 1024);
  ASSERT_EQ(end_.Write(data), data.size());
  driver_->AskForInterrupt(GuestDriver::kReceiveRing,
                           driver_->Word(GuestDriver::kReceiveRing + 2 * GuestDriver::kPage + 2));
  for (int i = 0; i < 10; ++i) {
    Turn();
  }
  EXPECT_EQ(driver_->TakeInterrupts(0), 1U);
  guest_->Poll();
  EXPECT_TRUE(socket_->received == data);
}

TEST_F(VsockCredit, AGuestHearsOfItsOwnBuffersLate) {
  Connect();
  g_now_ms += 10;
  Settle();
  driver_->TakeInterrupts(1);
  driver_->AskForInterrupt(GuestDriver::kSendRing, driver_->sent_used());
  guest_->Write(*socket_, "few");
  Settle();
  EXPECT_EQ(end_.Read(), "few");
  EXPECT_EQ(driver_->TakeInterrupts(1), 0U);
  g_now_ms += 2;
  Settle();
  EXPECT_EQ(driver_->TakeInterrupts(1), 1U);
}

TEST_F(VsockCredit, AGuestIsNotAskedForNotificationsWhileTheDeviceIsAwake) {
  Connect();
  Settle();
  const uint16_t sent = driver_->sent_used();
  // It waits: the next one is to be told.
  EXPECT_TRUE(driver_->WantsKick(GuestDriver::kSendRing, static_cast<uint16_t>(sent + 1), sent));
  // Buffers for it are not, as it has enough.
  const uint16_t given = driver_->Word(GuestDriver::kReceiveRing + GuestDriver::kPage + 2);
  EXPECT_FALSE(
      driver_->WantsKick(GuestDriver::kReceiveRing, static_cast<uint16_t>(given + 1), given));
}

}  // namespace
}  // namespace gantry::vmm::vsock
