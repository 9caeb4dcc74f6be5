// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/vsock/guest.h"

#include <algorithm>

namespace gantry::vmm::vsock {

PacketHeader Guest::HeaderOf(const GuestSocket& socket, PacketOp op) const {
  return {.source_cid = cid_,
          .target_cid = kHostCid,
          .source_port = socket.ports.guest,
          .target_port = socket.ports.host,
          .type = static_cast<uint16_t>(PacketType::kStream),
          .op = static_cast<uint16_t>(op),
          .window = socket.window,
          .forwarded = socket.taken};
}

void Guest::Say(const GuestSocket& socket, PacketOp op, uint32_t flags, std::string_view data) {
  PacketHeader header = HeaderOf(socket, op);
  header.flags = flags;
  header.length = static_cast<uint32_t>(data.size());
  driver_.Send(header, data);
}

GuestSocket& Guest::Dial(uint32_t host_port) {
  const Ports ports{.guest = next_port_++, .host = host_port};
  auto& made = sockets_[{ports.guest, ports.host}];
  made = std::make_unique<GuestSocket>();
  made->ports = ports;
  Say(*made, PacketOp::kRequest);
  return *made;
}

size_t Guest::Write(GuestSocket& socket, std::string_view data) {
  constexpr size_t kMost = 64 * 1024;
  size_t written = 0;
  while (!data.empty()) {
    const size_t size = std::min({data.size(), kMost, socket.Credit()});
    if (size == 0) {
      break;
    }
    socket.sent += static_cast<uint32_t>(size);
    Say(socket, PacketOp::kData, 0, data.substr(0, size));
    data.remove_prefix(size);
    written += size;
  }
  return written;
}

void Guest::End(GuestSocket& socket, uint32_t flags) { Say(socket, PacketOp::kShutdown, flags); }

std::string Guest::Read(GuestSocket& socket) {
  std::string taken = std::exchange(socket.received, {});
  if (!taken.empty()) {
    socket.taken += static_cast<uint32_t>(taken.size());
    Say(socket, PacketOp::kCreditUpdate);
  }
  return taken;
}

void Guest::Poll() {
  while (const auto packet = driver_.Receive()) {
    Take(*packet);
  }
}

void Guest::Take(const Packet& packet) {
  const Ports ports{.guest = packet.header.target_port, .host = packet.header.source_port};
  auto& found = sockets_[{ports.guest, ports.host}];
  if (!found) {
    found = std::make_unique<GuestSocket>();
    found->ports = ports;
    if (packet.op() == PacketOp::kRequest && listening_.contains(ports.guest)) {
      accepted_.push_back(found.get());
      found->is_open = true;
      Say(*found, PacketOp::kResponse);
    } else if (packet.op() == PacketOp::kRequest) {
      Say(*found, PacketOp::kReset);
    }
  }
  GuestSocket& socket = *found;
  ++socket.got[packet.op()];
  socket.host_window = packet.header.window;
  socket.host_forwarded = packet.header.forwarded;
  socket.is_open = socket.is_open || packet.op() == PacketOp::kResponse;
  socket.is_reset = socket.is_reset || packet.op() == PacketOp::kReset;
  if (packet.op() == PacketOp::kShutdown) {
    socket.ended |= packet.header.flags;
  } else if (packet.op() == PacketOp::kData) {
    socket.received += packet.data;
    arrivals_.emplace_back(ports.guest, packet.data.size());
  } else if (packet.op() == PacketOp::kCreditRequest) {
    Say(socket, PacketOp::kCreditUpdate);
  }
}

}  // namespace gantry::vmm::vsock
