// SPDX-License-Identifier: Apache-2.0
//
// How streams end: one direction after the other, both at once, and in error.
#include <string>

#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

constexpr size_t kMuch = 3 << 20;

class VsockEnd : public VsockTest {
 protected:
  void Connect(DriverSettings driver = {}) {
    Boot(driver);
    listener_ = Listen(1025);
    auto [socket, end] = DialOut(listener_, 1025);
    socket_ = socket;
    end_ = std::move(end);
  }

  UniqueFd listener_;
  GuestSocket* socket_ = nullptr;
  HostEnd end_;
};

TEST_F(VsockEnd, TheGuestsHalfIsCarried) {
  Connect();
  const std::string data = Pattern(kMuch);
  std::string_view left = data;
  std::string arrived;
  bool said = false;
  EXPECT_TRUE(Eventually([&] {
    left.remove_prefix(guest_->Write(*socket_, left));
    if (left.empty() && !said) {
      guest_->End(*socket_, kNoMoreSends);
      said = true;
    }
    // Slowly, so that most of it waits.
    arrived += end_.Read(1 << 14);
    return end_.ended();
  }));
  EXPECT_TRUE(arrived == data);
  // The other half goes on.
  EXPECT_TRUE(ToGuest(end_, *socket_, data) == data);
  EXPECT_EQ(socket_->ended, 0U);
  end_.Close();
  EXPECT_TRUE(Eventually([&] { return socket_->ended == kNeither; }));
}

TEST_F(VsockEnd, TheHostsHalfIsCarried) {
  Connect();
  const std::string data = Pattern(kMuch);
  std::string_view left = data;
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    left.remove_prefix(left.empty() ? 0 : end_.Write(left));
    if (left.empty()) {
      end_.End();
    }
    arrived += guest_->Read(*socket_);
    return socket_->ended != 0;
  }));
  arrived += guest_->Read(*socket_);
  EXPECT_TRUE(arrived == data);
  EXPECT_EQ(socket_->ended, kNoMoreSends);
  EXPECT_TRUE(ToHost(*socket_, end_, data) == data);
  EXPECT_FALSE(end_.ended());
  guest_->End(*socket_, kNeither);
  EXPECT_TRUE(Eventually([&] { return end_.Read().empty() && end_.ended(); }));
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
}

TEST_F(VsockEnd, OfAGuestThatClosesNothingIsLost) {
  Connect();
  const std::string data = Pattern(200 * 1024);
  EXPECT_EQ(guest_->Write(*socket_, data), data.size());
  guest_->End(*socket_, kNeither);
  // It is told that it may forget the stream before anybody has read a byte.
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    arrived += end_.Read(1 << 14);
    return end_.ended();
  }));
  EXPECT_TRUE(arrived == data);
  EXPECT_TRUE(Eventually([&] { return server_->device().streams() == 0; }));
}

TEST_F(VsockEnd, OfAHostThatClosesNothingIsLost) {
  Connect();
  const std::string data = Pattern(100 * 1024);
  EXPECT_EQ(end_.Write(data), data.size());
  end_.Close();
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    arrived += guest_->Read(*socket_);
    return socket_->ended == kNeither;
  }));
  arrived += guest_->Read(*socket_);
  EXPECT_TRUE(arrived == data);
  guest_->Say(*socket_, PacketOp::kReset);
  EXPECT_TRUE(Eventually([&] { return server_->device().streams() == 0; }));
}

TEST_F(VsockEnd, AGuestLearnsThatNobodyReads) {
  Connect();
  end_.Close();
  EXPECT_TRUE(Eventually([&] { return (socket_->ended & kNoMoreReceives) != 0; }));
  // What it has sent meanwhile is dropped, without a reset.
  guest_->Write(*socket_, "late");
  Settle();
  EXPECT_FALSE(socket_->is_reset);
}

TEST_F(VsockEnd, AGuestThatIsBlockedLearnsThatNobodyReads) {
  Connect();
  const std::string data = Pattern(1 << 20);
  guest_->Write(*socket_, data);
  Settle();
  guest_->Write(*socket_, data);
  Settle();
  ASSERT_EQ(socket_->Credit(), 0U);
  end_.Close();
  EXPECT_TRUE(Eventually([&] { return (socket_->ended & kNoMoreReceives) != 0; }));
}

TEST_F(VsockEnd, AHostLearnsThatTheGuestReadsNoMore) {
  Connect();
  guest_->End(*socket_, kNoMoreReceives);
  EXPECT_TRUE(Eventually([&] {
    end_.Write("x");
    return end_.broken();
  }));
  EXPECT_EQ(ToHost(*socket_, end_, "still"), "still");
}

TEST_F(VsockEnd, AResetEndsTheHostsSocketBehindItsData) {
  Connect();
  const std::string data = Pattern(240 * 1024);
  EXPECT_EQ(guest_->Write(*socket_, data), data.size());
  guest_->Say(*socket_, PacketOp::kReset);
  std::string arrived;
  EXPECT_TRUE(Eventually([&] {
    arrived += end_.Read(1 << 14);
    return end_.ended();
  }));
  EXPECT_TRUE(arrived == data);
}

TEST_F(VsockEnd, PortsCanBeUsedAgain) {
  Connect();
  guest_->Write(*socket_, Pattern(240 * 1024));
  guest_->End(*socket_, kNeither);
  ASSERT_TRUE(Eventually([&] { return socket_->is_reset; }));
  // Its last bytes still wait for the host, and another stream has its name.
  socket_->is_reset = false;
  socket_->is_open = false;
  socket_->sent = 0;
  socket_->taken = 0;
  guest_->Say(*socket_, PacketOp::kRequest);
  HostEnd second;
  ASSERT_TRUE(Eventually([&] {
    second = second ? std::move(second) : HostEnd::Accept(listener_);
    return second && socket_->is_open;
  }));
  ExpectCarries(*socket_, second);
}

TEST_F(VsockEnd, WithTheFrontEndAllStreamsEnd) {
  Connect();
  driver_->Leave();
  EXPECT_FALSE(Turn() && Turn() && Turn());
  EXPECT_TRUE(end_.Read().empty() && end_.ended());
}

TEST_F(VsockEnd, OldDriversHaveTheHeaderApart) {
  Connect({.event_index = false, .buffers = 64, .header_apart = true});
  const std::string data = Pattern(1 << 20);
  EXPECT_TRUE(ToGuest(end_, *socket_, data) == data);
  EXPECT_TRUE(ToHost(*socket_, end_, data) == data);
}

}  // namespace
}  // namespace gantry::vmm::vsock
