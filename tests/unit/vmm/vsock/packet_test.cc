// SPDX-License-Identifier: Apache-2.0
//
// Packets that an honest guest does not send.
#include <string>

#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

class VsockPacket : public VsockTest {
 protected:
  void SetUp() override {
    Boot();
    listener_ = Listen(1025);
    auto [socket, end] = DialOut(listener_, 1025);
    socket_ = socket;
    end_ = std::move(end);
  }

  /// A stream that there is none of.
  GuestSocket& Unknown() {
    // Dialled, refused, and so known to the guest alone.
    GuestSocket& socket = guest_->Dial(9);
    EXPECT_TRUE(Eventually([&] { return socket.is_reset; }));
    socket.got.clear();
    return socket;
  }

  void SendChanged(const GuestSocket& socket, PacketOp op, void (*change)(PacketHeader&)) {
    PacketHeader header = guest_->HeaderOf(socket, op);
    change(header);
    driver_->Send(header, "");
    Settle();
  }

  void ExpectStillServes() {
    auto [socket, end] = DialOut(listener_, 1025);
    ExpectCarries(*socket, end);
  }

  UniqueFd listener_;
  GuestSocket* socket_ = nullptr;
  HostEnd end_;
};

TEST_F(VsockPacket, OfAnUnknownStreamIsReset) {
  GuestSocket& unknown = Unknown();
  for (const PacketOp op :
       {PacketOp::kResponse, PacketOp::kShutdown, PacketOp::kData, PacketOp::kCreditUpdate,
        PacketOp::kCreditRequest, PacketOp{0}, PacketOp{8}, PacketOp{0xffff}}) {
    unknown.got.clear();
    guest_->Say(unknown, op);
    EXPECT_TRUE(Eventually([&] { return unknown.got[PacketOp::kReset] == 1; }))
        << static_cast<int>(op);
  }
  // A reset is not answered, or the two would never end.
  unknown.got.clear();
  guest_->Say(unknown, PacketOp::kReset);
  Settle();
  EXPECT_TRUE(unknown.got.empty());
  ExpectStillServes();
}

TEST_F(VsockPacket, OfAnotherGuestOrForAnotherHostIsDropped) {
  SendChanged(*socket_, PacketOp::kReset, [](PacketHeader& header) { header.source_cid = 4; });
  SendChanged(*socket_, PacketOp::kReset, [](PacketHeader& header) { header.target_cid = 1; });
  SendChanged(*socket_, PacketOp::kRequest,
              [](PacketHeader& header) { header.source_cid = UINT64_MAX; });
  ExpectCarries(*socket_, end_);
}

TEST_F(VsockPacket, OfAnotherTypeResetsItsStream) {
  SendChanged(*socket_, PacketOp::kData, [](PacketHeader& header) { header.type = 2; });
  EXPECT_TRUE(socket_->is_reset);
  ExpectStillServes();
}

TEST_F(VsockPacket, LongerThanItsBufferResetsItsStream) {
  SendChanged(*socket_, PacketOp::kData, [](PacketHeader& header) { header.length = 1; });
  EXPECT_TRUE(socket_->is_reset);
  ExpectStillServes();
}

TEST_F(VsockPacket, OfALengthBeyondAllBoundsResetsItsStream) {
  SendChanged(*socket_, PacketOp::kData, [](PacketHeader& header) { header.length = UINT32_MAX; });
  EXPECT_TRUE(socket_->is_reset);
  ExpectStillServes();
}

TEST_F(VsockPacket, OfAnUnknownKindResetsItsStream) {
  guest_->Say(*socket_, PacketOp{99});
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  ExpectStillServes();
}

TEST_F(VsockPacket, ARequestForAStreamThatIsThereResetsIt) {
  guest_->Say(*socket_, PacketOp::kRequest);
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  EXPECT_TRUE(Eventually([&] { return end_.Read().empty() && end_.ended(); }));
  ExpectStillServes();
}

TEST_F(VsockPacket, AResponseThatNobodyHasAskedForResetsItsStream) {
  guest_->Say(*socket_, PacketOp::kResponse);
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  ExpectStillServes();
}

TEST_F(VsockPacket, DataBehindItsEndResetsTheStream) {
  guest_->End(*socket_, kNoMoreSends);
  guest_->Write(*socket_, "more");
  EXPECT_TRUE(Eventually([&] { return socket_->is_reset; }));
  ExpectStillServes();
}

TEST_F(VsockPacket, DataBeforeTheResponseResetsTheStream) {
  HostEnd end = HostEnd::Connect(path_);
  end.Write("CONNECT 60\n");
  // The guest does not see the request before it sends: its answer is made by hand.
  std::optional<Packet> request;
  ASSERT_TRUE([&] {
    for (int i = 0; i < 1000 && !request; ++i) {
      Turn();
      request = driver_->Receive();
    }
    return request && request->op() == PacketOp::kRequest;
  }());
  PacketHeader header = guest_->HeaderOf(
      {.ports = {.guest = request->header.target_port, .host = request->header.source_port}},
      PacketOp::kData);
  driver_->Send(header, "");
  EXPECT_TRUE(Eventually([&] { return end.Read().empty() && end.ended(); }));
  ExpectStillServes();
}

TEST_F(VsockPacket, ShorterThanAHeaderIsDropped) {
  driver_->WriteDescriptor(GuestDriver::kSendRing, 126, GuestDriver::kGuestBase, 43, 0, 0);
  driver_->Offer(GuestDriver::kSendRing, 126);
  driver_->Kick(1);
  Settle();
  ExpectCarries(*socket_, end_);
}

TEST_F(VsockPacket, AFloodOfUnknownOnesGrowsNothing) {
  // The guest takes no answers meanwhile.
  driver_->set_keeps_buffers(true);
  for (uint32_t port = 0; port < 5000; ++port) {
    PacketHeader header = guest_->HeaderOf({.ports = {.guest = port, .host = 9}}, PacketOp::kData);
    driver_->Send(header, "");
    Turn();
  }
  EXPECT_EQ(server_->device().streams(), 1U);
  driver_->set_keeps_buffers(false);
  for (int i = 0; i < 10; ++i) {
    driver_->GiveKept();
    Settle();
  }
  ExpectCarries(*socket_, end_);
}

TEST_F(VsockPacket, AFloodOfRequestsTakesNoMoreThanThereAre) {
  for (uint32_t port = 0; port < 3000; ++port) {
    guest_->Dial(9);
  }
  Settle();
  EXPECT_LE(server_->device().streams(), kMaxStreams);
  EXPECT_TRUE(Eventually([&] { return server_->device().streams() == 1; }));
  ExpectStillServes();
}

}  // namespace
}  // namespace gantry::vmm::vsock
