// SPDX-License-Identifier: Apache-2.0
//
// A guest that does what it likes with the vsock device's queues, and hosts beside it: packets of
// every kind, chains by hand, bytes over the rings. The device comes back from each turn, has no
// more streams than it may, and serves a host's and a guest's streams as long as its queues are
// whole.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"
#include "plugins/vmm/vsock/server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/vmm/vsock/guest_driver.h"
#include "tests/unit/vmm/vsock/host_end.h"

namespace gantry::fuzz {
namespace {

using vmm::vsock::GuestDriver;
using vmm::vsock::HostEnd;
using vmm::vsock::PacketHeader;
using vmm::vsock::Server;

constexpr size_t kStreams = 8;
constexpr size_t kMostHosts = 8;
constexpr size_t kMostSteps = 200;

template <class T>
T Take(std::string_view& input) {
  T value{};
  const size_t size = std::min(sizeof(value), input.size());
  memcpy(&value, input.data(), size);
  input.remove_prefix(size);
  return value;
}

/// Sockets are those of one directory for all inputs. The guest has one listener.
struct Place {
  os::TempDir directory = *os::TempDir::Create();
  std::string name = directory.path() + "/v";
  std::string front = directory.path() + "/front";
  UniqueFd listener = *ListenUnix(name + "_1");
  UniqueFd hosts = *ListenUnix(name);
  UniqueFd front_ends = *ListenUnix(front);
};

Place& ThePlace() {
  static Place place;
  return place;
}

class Machine {
 public:
  explicit Machine(bool event_index)
      : server_({.front_ends = *ThePlace().front_ends.Duplicate(),
                 .hosts = *ThePlace().hosts.Duplicate(),
                 .device = {.guest_cid = 3, .name = ThePlace().name, .most_streams = kStreams}}) {
    Require(server_.Open().has_value(), "there is a server");
    driver_ = std::make_unique<GuestDriver>(*ConnectUnix(ThePlace().front),
                                            vmm::vsock::DriverSettings{.event_index = event_index},
                                            [this] { server_.Turn(0); });
    Require(driver_->Bring(), "the queues start");
  }

  void Step(std::string_view& input) {
    switch (TakeByte(input) % 8) {
      case 0:
        SendPacket(input);
        break;
      case 1:
        WriteRing(input);
        break;
      case 2:
        WriteChain(input);
        break;
      case 3:
        HostsCome(input);
        break;
      case 4:
        HostsGo(input);
        break;
      case 5:
        driver_->Kick(TakeByte(input) % 2);
        break;
      case 6:
        Drain();
        break;
      default:
        if (HostEnd end = HostEnd::Accept(ThePlace().listener); end) {
          Add(std::move(end));
        }
        break;
    }
    server_.Turn(0);
    Require(server_.device().streams() <= kStreams, "there are no more streams than may be");
  }

 private:
  /// Well-formed as a chain, of any content.
  void SendPacket(std::string_view& input) {
    if (!server_.device().is_running() || ring_is_spoilt_) {
      return;
    }
    PacketHeader header{.source_cid = 3,
                        .target_cid = 2,
                        .source_port = TakeByte(input) % 4U,
                        .target_port = TakeByte(input) % 4U,
                        .type = 1,
                        .op = static_cast<uint16_t>(TakeByte(input) % 10)};
    const uint8_t kind = TakeByte(input);
    header.flags = kind % 4;
    header.window = (kind & 4) != 0 ? 262144 : Take<uint32_t>(input);
    header.forwarded = (kind & 8) != 0 ? 0 : Take<uint32_t>(input);
    const std::string data((kind & 16) != 0 ? Take<uint16_t>(input) : 0U, 'x');
    header.length = (kind & 32) != 0 ? Take<uint32_t>(input) : static_cast<uint32_t>(data.size());
    if ((kind & 64) != 0) {
      header.target_port = Take<uint32_t>(input);
    }
    driver_->Send(header, data);
  }

  void WriteRing(std::string_view& input) {
    const size_t at = Take<uint16_t>(input) % GuestDriver::kReceiveBuffers;
    const size_t size = std::min<size_t>(TakeByte(input) % 32, input.size());
    memcpy(driver_->At(at), input.data(), size);
    input.remove_prefix(size);
    ring_is_spoilt_ = true;
  }

  void WriteChain(std::string_view& input) {
    const size_t ring =
        TakeByte(input) % 2 == 0 ? GuestDriver::kSendRing : GuestDriver::kReceiveRing;
    const uint16_t index = TakeByte(input);
    driver_->WriteDescriptor(ring, index % GuestDriver::kQueueSize,
                             GuestDriver::kGuestBase + Take<uint32_t>(input), Take<uint32_t>(input),
                             TakeByte(input) % 8, TakeByte(input));
    driver_->Offer(ring, index);
    ring_is_spoilt_ = true;
  }

  void HostsCome(std::string_view& input) {
    HostEnd end = HostEnd::Connect(ThePlace().name);
    const uint8_t kind = TakeByte(input);
    const size_t size = std::min<size_t>(kind % 24, input.size());
    if ((kind & 128) != 0) {
      end.Write(Format("CONNECT {}\n", kind % 4));
    }
    end.Write(input.substr(0, size));
    input.remove_prefix(size);
    Add(std::move(end));
  }

  void HostsGo(std::string_view& input) {
    if (ends_.empty()) {
      return;
    }
    HostEnd& end = ends_[TakeByte(input) % ends_.size()];
    switch (TakeByte(input) % 4) {
      case 0:
        end.Close();
        break;
      case 1:
        end.End();
        break;
      case 2:
        end.Write(std::string(Take<uint16_t>(input), 'y'));
        break;
      default:
        end.Read();
        break;
    }
  }

  /// The guest takes what there is; of rings that it has spoilt that is nothing.
  void Drain() {
    for (int i = 0; i < 256 && !ring_is_spoilt_ && driver_->Receive(); ++i) {
    }
  }

  void Add(HostEnd end) {
    if (ends_.size() == kMostHosts) {
      ends_.erase(ends_.begin());
    }
    ends_.push_back(std::move(end));
  }

  Server server_;
  std::unique_ptr<GuestDriver> driver_;
  std::vector<HostEnd> ends_;
  bool ring_is_spoilt_ = false;
};

}  // namespace

void FuzzOne(std::string_view input) {
  Machine machine(TakeByte(input) % 2 == 0);
  for (size_t step = 0; step < kMostSteps && !input.empty(); ++step) {
    machine.Step(input);
  }
  // Those that nobody has accepted are not the next input's.
  for (const UniqueFd* one : {&ThePlace().listener, &ThePlace().hosts}) {
    while (HostEnd::Accept(*one)) {
    }
  }
}

}  // namespace gantry::fuzz
