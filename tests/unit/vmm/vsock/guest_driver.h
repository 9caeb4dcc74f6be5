// SPDX-License-Identifier: Apache-2.0
//
// The other side of the device, for tests: a front end of vhost-user and the driver of a guest, in
// one, with a memory of its own and both queues in it. What the device has to do is done between
// two looks of the driver: whoever uses it says how, as a turn of the server or by waiting for a
// program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/unique_fd.h>

#include "plugins/vmm/vsock/packet.h"
#include "plugins/vmm/vsock/vhost_user.h"

namespace gantry::vmm::vsock {

struct Packet {
  PacketHeader header;
  std::string data;

  PacketOp op() const { return static_cast<PacketOp>(header.op); }
};

struct DriverSettings {
  uint64_t cid = 3;
  bool event_index = true;
  /// How many buffers the guest has for the device.
  size_t buffers = 128;
  /// As older drivers have it.
  bool header_apart = false;
};

class GuestDriver {
 public:
  static constexpr uint32_t kQueueSize = 128;
  static constexpr size_t kMemoryBytes = 8 << 20;
  static constexpr uint64_t kGuestBase = 0x100000;
  static constexpr uint64_t kFrontEndBase = 0x7f0000000000;
  /// Where things are in the memory. Rings have their descriptors, then, each a page further,
  /// what is available and what is used.
  static constexpr size_t kSendRing = 0;
  static constexpr size_t kReceiveRing = 0x3000;
  static constexpr size_t kPage = 0x1000;
  static constexpr size_t kReceiveBuffers = 0x10000;
  static constexpr size_t kReceiveStride = 0x2000;
  static constexpr size_t kSendBuffers = 0x200000;
  static constexpr size_t kSendStride = 0x11000;
  static constexpr size_t kData = 4096;

  /// `socket`: connected to the device. `turn` lets the device do something.
  GuestDriver(UniqueFd socket, DriverSettings settings, std::function<void()> turn);
  GuestDriver(const GuestDriver&) = delete;
  GuestDriver& operator=(const GuestDriver&) = delete;
  ~GuestDriver();

  // --- The front end.

  /// All that a front end does until both queues run. False: the device has said no.
  bool Bring();
  /// Without starting queues.
  bool Introduce();
  bool ShareMemory();
  bool StartQueue(uint32_t index, uint16_t base);
  /// Returns the base.
  std::optional<uint16_t> StopQueue(uint32_t index);
  bool Enable(uint32_t index, bool enabled);

  /// Sends a request as it is.
  bool Say(uint32_t request, uint32_t flags, std::span<const char> payload,
           std::span<const int> descriptors);
  /// Its answer's payload; nothing when the device has ended the conversation.
  std::optional<std::string> Ask(Request request, std::span<const char> payload);
  /// Whether the device took it.
  bool Order(Request request, std::span<const char> payload, std::span<const int> descriptors = {});
  std::optional<std::string> Hear();

  template <class T>
  static std::span<const char> Bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }

  int memory_file() const { return file_.get(); }

  /// Its queues are empty, as those of a driver that was loaded again.
  void Restart();

  /// Nobody says anything any more.
  void Leave() { socket_.reset(); }

  bool HasLeft();

  // --- The driver.

  std::byte* At(size_t offset) { return memory_ + offset; }

  uint16_t& Word(size_t offset) { return *reinterpret_cast<uint16_t*>(At(offset)); }

  /// Puts a packet into the queue and tells the device where that wants to be told; turns where
  /// the queue is full.
  void Send(const PacketHeader& header, std::string_view data);
  /// One descriptor, made by hand, and the head of a chain.
  void WriteDescriptor(size_t ring, uint16_t index, uint64_t address, uint32_t length,
                       uint16_t flags, uint16_t next);
  void Offer(size_t ring, uint16_t head);
  void Kick(uint32_t index);
  bool WantsKick(size_t ring, uint16_t fresh, uint16_t old);

  /// The next packet of the device's, if there is one; its buffer goes back to the device unless
  /// `keeps_buffers`.
  std::optional<Packet> Receive();
  void GiveBuffer(uint16_t buffer);
  /// Buffers that were kept.
  void GiveKept();

  void set_keeps_buffers(bool keeps) { keeps_buffers_ = keeps; }

  /// How often the device has interrupted, since the last call.
  uint64_t TakeInterrupts(uint32_t index);
  /// Buffers that the device has given back.
  uint16_t sent_used();
  /// So that it is interrupted when the device has used one more than that.
  void AskForInterrupt(size_t ring, uint16_t after);

 private:
  static size_t AvailableOf(size_t ring) { return ring + kPage; }

  static size_t UsedOf(size_t ring) { return ring + 2 * kPage; }

  uint16_t Load(size_t offset);
  void Store(size_t offset, uint16_t value);

  UniqueFd socket_;
  DriverSettings settings_;
  std::function<void()> turn_;
  UniqueFd file_;
  std::byte* memory_ = nullptr;
  UniqueFd kicks_[2];
  UniqueFd calls_[2];
  uint16_t sent_ = 0;
  uint16_t offered_ = 0;
  uint16_t received_ = 0;
  bool keeps_buffers_ = false;
  std::vector<uint16_t> kept_;
};

}  // namespace gantry::vmm::vsock
