// SPDX-License-Identifier: Apache-2.0
//
// How streams begin, from both sides.
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plugins/vmm/vsock/confine.h"
#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

using VsockDial = VsockTest;

TEST_F(VsockDial, TheGuestReachesAListener) {
  Boot();
  const UniqueFd listener = Listen(1025);
  auto [socket, end] = DialOut(listener, 1025);
  ExpectCarries(*socket, end);
}

TEST_F(VsockDial, TheGuestIsRefusedAtOnceWhereNobodyListens) {
  Boot();
  GuestSocket& socket = guest_->Dial(77);
  EXPECT_TRUE(Eventually([&] { return socket.is_reset; }));
  EXPECT_FALSE(socket.is_open);
  Settle();
  EXPECT_EQ(server_->device().streams(), 0U);
}

TEST_F(VsockDial, AListenerThatIsBusyIsTriedAgain) {
  Boot();
  const UniqueFd listener = Listen(1025);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  std::vector<GuestSocket*> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(&guest_->Dial(1025));
  }
  Settle();
  EXPECT_FALSE(sockets.back()->is_open);
  EXPECT_FALSE(sockets.back()->is_reset);
  std::vector<HostEnd> ends;
  EXPECT_TRUE(Eventually([&] {
    if (HostEnd end = HostEnd::Accept(listener); end) {
      ends.push_back(std::move(end));
    }
    return std::ranges::all_of(sockets, &GuestSocket::is_open);
  }));
}

TEST_F(VsockDial, AListenerThatStaysBusyIsGivenUp) {
  Boot();
  const UniqueFd listener = Listen(1025);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  GuestSocket& first = guest_->Dial(1025);
  GuestSocket& second = guest_->Dial(1025);
  Settle();
  EXPECT_TRUE(first.is_open);
  EXPECT_FALSE(second.is_reset);
  g_now_ms += 3000;
  EXPECT_TRUE(Eventually([&] { return second.is_reset; }));
}

TEST_F(VsockDial, TheHostReachesTheGuest) {
  Boot();
  auto [socket, end] = DialIn(52);
  ExpectCarries(*socket, end);
}

TEST_F(VsockDial, TheHostSeesItsEndWhereTheGuestRefuses) {
  Boot();
  HostEnd end = HostEnd::Connect(path_);
  end.Write("CONNECT 52\n");
  EXPECT_TRUE(Eventually([&] { return end.Read().empty() && end.ended(); }));
}

TEST_F(VsockDial, WhatFollowsTheGreetingIsTheGuests) {
  Boot();
  guest_->Listen(52);
  HostEnd end = HostEnd::Connect(path_);
  end.Write("CONNECT 52\nearly");
  ASSERT_TRUE(Eventually([&] { return !guest_->accepted().empty(); }));
  GuestSocket& socket = *guest_->accepted().front();
  std::string arrived;
  EXPECT_TRUE(Eventually([&] { return (arrived += guest_->Read(socket)) == "early"; }));
  EXPECT_EQ(end.Read(), Format("OK {}\n", socket.ports.host));
}

TEST_F(VsockDial, AGreetingMayComeByteByByteAndInSmallLetters) {
  Boot();
  guest_->Listen(4294967294);
  HostEnd end = HostEnd::Connect(path_);
  for (const char one : std::string("connect 4294967294\n")) {
    end.Write(std::string(1, one));
    Settle();
  }
  EXPECT_TRUE(Eventually([&] { return end.Read().starts_with("OK "); }));
}

TEST_F(VsockDial, WhatIsNoGreetingIsClosed) {
  Boot();
  for (const char* text :
       {"HELLO 52\n", "CONNECT\n", "CONNECT \n", "CONNECT x\n", "CONNECT 4294967296\n",
        "CONNECT 52 \n", "CONNECT -1\n", "CONNECT 000000000000000000052\n", "\n", "CONN ",
        "CONNECT 11111111111"}) {
    HostEnd end = HostEnd::Connect(path_);
    end.Write(text);
    EXPECT_TRUE(Eventually([&] { return end.Read().empty() && end.ended(); })) << text;
  }
  Settle();
  EXPECT_EQ(server_->device().streams(), 0U);
}

TEST_F(VsockDial, WhoSaysNothingMakesRoomForOthers) {
  Boot();
  std::vector<HostEnd> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(HostEnd::Connect(path_));
    Settle();
  }
  EXPECT_LE(server_->device().streams(), 16U);
  auto [socket, end] = DialIn(52);
  ExpectCarries(*socket, end);
  EXPECT_TRUE(Eventually([&] { return silent.front().Read().empty() && silent.front().ended(); }));
}

TEST_F(VsockDial, AHostThatLeavesBeforeTheAnswerHarmsNobody) {
  Boot();
  auto [socket, end] = DialIn(52);
  for (int i = 0; i < 100; ++i) {
    HostEnd left = HostEnd::Connect(path_);
    left.Write("CONNECT 52\n");
    // The request is on its way, or has been answered, or not been seen.
    for (int turn = 0; turn < i % 4; ++turn) {
      Turn();
    }
    left.Close();
    Settle();
  }
  ExpectCarries(*socket, end);
  for (GuestSocket* const other : guest_->accepted()) {
    EXPECT_TRUE(other == socket || other->is_reset);
  }
  EXPECT_EQ(server_->device().streams(), 1U);
}

TEST_F(VsockDial, ManyStreamsAtOnce) {
  Boot();
  const UniqueFd listener = Listen(1025);
  constexpr size_t kMany = 400;
  // The host's ends are this process's, too.
  ASSERT_EQ(ReserveDescriptors(2 * kMany).value_or(0), 2 * kMany);
  std::vector<GuestSocket*> sockets;
  std::vector<HostEnd> ends;
  for (size_t i = 0; i < kMany; ++i) {
    sockets.push_back(&guest_->Dial(1025));
  }
  ASSERT_TRUE(Eventually([&] {
    if (HostEnd end = HostEnd::Accept(listener); end) {
      ends.push_back(std::move(end));
    }
    return ends.size() == kMany && std::ranges::all_of(sockets, &GuestSocket::is_open);
  }));
  // Each says who it is, and gets that back.
  for (GuestSocket* const socket : sockets) {
    guest_->Write(*socket, Format("{:08}", socket->ports.guest));
  }
  EXPECT_TRUE(Eventually([&] {
    for (HostEnd& end : ends) {
      end.Write(end.Read());
    }
    return std::ranges::all_of(sockets, [](const GuestSocket* socket) {
      return socket->received == Format("{:08}", socket->ports.guest);
    });
  }));
}

TEST_F(VsockDial, OneStreamTooManyIsRefused) {
  Boot({}, 8);
  const UniqueFd listener = Listen(1025);
  std::vector<std::pair<GuestSocket*, HostEnd>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(DialOut(listener, 1025));
  }
  GuestSocket& refused = guest_->Dial(1025);
  EXPECT_TRUE(Eventually([&] { return refused.is_reset; }));
  guest_->End(*all.front().first, kNeither);
  EXPECT_TRUE(Eventually([&] { return all.front().first->is_reset; }));
  auto [socket, end] = DialOut(listener, 1025);
  ExpectCarries(*socket, end);
}

TEST_F(VsockDial, WhoComesBeforeTheGuestIsClosed) {
  Open();
  HostEnd end = HostEnd::Connect(path_);
  EXPECT_TRUE(Eventually([&] { return end.Read().empty() && end.ended(); }));
}

}  // namespace
}  // namespace gantry::vmm::vsock
