// SPDX-License-Identifier: Apache-2.0
//
// A guest's network stack for tests: streams of a driver's packets, with credits both ways as an
// honest guest has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/vmm/vsock/stream.h"
#include "tests/unit/vmm/vsock/guest_driver.h"

namespace gantry::vmm::vsock {

class Guest;

/// One end in the guest.
struct GuestSocket {
  Ports ports;
  uint32_t window = 256 * 1024;
  /// What has come, and what of it the guest has taken.
  std::string received{};
  uint32_t taken = 0;
  uint32_t sent = 0;
  uint32_t host_window = 0;
  uint32_t host_forwarded = 0;
  bool is_open = false;
  bool is_reset = false;
  /// kNoMoreSends and kNoMoreReceives of the host.
  uint32_t ended = 0;
  /// Packets of each kind.
  std::map<PacketOp, int> got{};

  size_t Credit() const { return host_window - (sent - host_forwarded); }
};

class Guest {
 public:
  explicit Guest(GuestDriver& driver, uint64_t cid = 3) : driver_(driver), cid_(cid) {}

  /// Asks for a port of the host.
  GuestSocket& Dial(uint32_t host_port);

  /// Answers those who ask for this port.
  void Listen(uint32_t port) { listening_.insert(port); }

  /// As much as there is credit for, in packets of up to 64 KiB. Returns how much.
  size_t Write(GuestSocket& socket, std::string_view data);
  void End(GuestSocket& socket, uint32_t flags);
  /// Takes all that has come, and tells the host so.
  std::string Read(GuestSocket& socket);
  void Say(const GuestSocket& socket, PacketOp op, uint32_t flags = 0, std::string_view data = {});

  /// Takes the packets that there are.
  void Poll();

  /// Those that hosts have made, in their order.
  std::vector<GuestSocket*>& accepted() { return accepted_; }

  /// The order in which streams got data: the guest's port, and how much.
  std::vector<std::pair<uint32_t, size_t>>& arrivals() { return arrivals_; }

  PacketHeader HeaderOf(const GuestSocket& socket, PacketOp op) const;

 private:
  void Take(const Packet& packet);

  GuestDriver& driver_;
  uint64_t cid_;
  uint32_t next_port_ = 1000;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<GuestSocket>> sockets_;
  std::set<uint32_t> listening_;
  std::vector<GuestSocket*> accepted_;
  std::vector<std::pair<uint32_t, size_t>> arrivals_;
};

}  // namespace gantry::vmm::vsock
