// SPDX-License-Identifier: Apache-2.0
//
// The vsock device of one guest: its two queues on one side, the host's sockets on the other, and
// the streams between them. In device.cc what it is told to do; in from_guest.cc and to_guest.cc
// the two directions of packets; in hosts.cc connections of the host's side.
//
// Nobody waits for anybody. What the guest sends is taken at once, always: to the host's socket,
// or, where that is full, to the stream's backlog, for which the guest has credit. What the host
// sends stays in its socket until the guest has credit and buffers for it. Streams take turns of
// 64 KiB for the guest's buffers.
//
// No call of the kernel's for each packet of what goes to the guest: one read fills as many
// buffers as there is data for. The guest is interrupted once for all that a turn has brought, and
// for buffers that only come back to it after a while, or when half of them have.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/vsock/guest_memory.h"
#include "plugins/vmm/vsock/packet.h"
#include "plugins/vmm/vsock/poller.h"
#include "plugins/vmm/vsock/resets.h"
#include "plugins/vmm/vsock/stream_table.h"
#include "plugins/vmm/vsock/virtqueue.h"

namespace gantry::vmm::vsock {

/// By their numbers on the wire. The third one, for events, has none here: they are about
/// migrations.
enum class QueueIndex : uint8_t { kToGuest = 0, kFromGuest = 1 };

struct DeviceSettings {
  uint64_t guest_cid = 0;
  /// Of the socket of who dials the guest; the guest dials `NAME_PORT`.
  std::string name;
  size_t most_streams = kMaxStreams;
};

/// Thread: the loop's. Nothing blocks.
class Device {
 public:
  /// `poller` outlives it.
  Device(Poller& poller, DeviceSettings settings);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() = default;

  /// Once, before all others. Errors: the errno's.
  Status Open();

  const DeviceSettings& settings() const { return settings_; }

  // --- What the front end says.

  GuestMemory& memory() { return memory_; }

  /// Streams are the guest's driver's: they go where a queue goes on elsewhere than it stopped.
  /// Errors: as `Virtqueue::Start`.
  Status Start(QueueIndex index, const QueueLayout& layout, uint16_t base, bool event_index);
  /// Streams stay as they are, for a guest that is paused. Returns the base of the next `Start`.
  uint16_t Stop(QueueIndex index);
  void SetCall(QueueIndex index, UniqueFd call);
  /// The memory was mapped anew. Errors: as `Virtqueue::Start`.
  Status Remap();
  /// Its driver, or its front end, is gone: no queue, no stream.
  void Reset();

  // --- What the loop says.

  /// Both queues run.
  bool is_running() const;

  /// They have, and stand still for now.
  bool is_paused() const { return was_running_ && !is_running(); }

  bool HasWork() const;
  /// Milliseconds until `Work` has something to do that nothing will tell of; -1: nothing.
  int Limit() const;
  /// The loop is about to wait. True: it need not, there is work.
  bool Arm();
  void Disarm();
  /// The guest's queue has been filled, or has buffers again.
  void OnQueue(QueueIndex index);
  void OnHost(const Event& event);
  /// Takes those who wait at `listener`; who comes to a guest that does not run is closed.
  void AcceptHosts(int listener);
  /// One turn. `now_ms`: of any clock that does not go back.
  void Work(uint64_t now_ms);

  size_t streams() const { return table_.size(); }

 private:
  /// A buffer for the guest, and what of it is for data.
  struct Buffer {
    uint16_t head = 0;
    std::byte* header = nullptr;
    size_t capacity = 0;
  };

  /// So many buffers of a page are a turn.
  static constexpr size_t kMaxBurst = 16;
  static constexpr size_t kPieces = 2 * Virtqueue::kMaxPieces;

  Virtqueue& QueueOf(QueueIndex index) {
    return index == QueueIndex::kToGuest ? to_guest_ : from_guest_;
  }

  void Break(const char* which);
  void RemoveAll();

  // from_guest.cc
  void TakeFromGuest();
  void TakeChain(std::span<iovec> pieces, uint64_t bytes);
  void TakePacket(const PacketHeader& header, std::span<iovec> data);
  void TakeRequest(const PacketHeader& header, const Ports& ports);
  void TakeForStream(Stream& stream, const PacketHeader& header, std::span<iovec> data);
  void TakeResponse(Stream& stream);
  void TakeShutdown(Stream& stream, uint32_t flags);
  void TakeData(Stream& stream, std::span<iovec> data, uint32_t size);
  /// It cannot go on; the guest hears of it, and the host's socket is closed.
  void Abort(Stream& stream);
  /// The guest has nothing to do with it any more, or will not once it has been told; what has
  /// come of it still goes to the host.
  void Leave(Stream& stream, bool tell);

  // to_guest.cc
  void GiveToGuest();
  /// False: the guest has no buffers.
  bool GiveOwed(Stream& stream);
  bool GiveShutdown(Stream& stream);
  bool GiveData(Stream& stream);
  bool Give(const Ports& ports, const Stream* stream, PacketOp op, uint32_t flags);
  Virtqueue::Next TakeBuffer(std::span<iovec> pieces, Chain& chain);
  size_t TakeBuffers(size_t most, size_t most_bytes, std::span<iovec> data, size_t& pieces);
  void FillBuffers(Stream& stream, size_t buffers, size_t bytes);
  PacketHeader HeaderOf(const Ports& ports, const Stream* stream, PacketOp op) const;
  void GiveResets();
  void Tell();

  // hosts.cc
  bool Watch(Stream& stream);
  void Greet(Stream& stream);
  void DropOldestGreeting();
  void RetryDials();
  void TryDial(Stream& stream);
  uint32_t FreeHostPort(uint32_t guest_port);
  void FlushToHost(Stream& stream);
  void HostLeft(Stream& stream);
  void LoseHostEnd(Stream& stream);

  Poller& poller_;
  DeviceSettings settings_;
  GuestMemory memory_;
  Virtqueue to_guest_;
  Virtqueue from_guest_;
  UniqueFd to_guest_call_;
  UniqueFd from_guest_call_;
  StreamTable table_;
  Resets resets_;
  std::array<Buffer, kMaxBurst> buffers_{};
  /// The base that each queue had when it stopped, while it stands still.
  std::array<uint16_t, 2> stopped_at_{};
  bool was_running_ = false;
  bool broken_ = false;
  /// There may be more packets of the guest's than one turn takes.
  bool guest_waits_ = false;
  /// Somebody has something for the guest, which has no buffers.
  bool starved_ = false;
  size_t greetings_ = 0;
  size_t dials_ = 0;
  uint32_t next_host_port_ = 0;
  uint64_t now_ms_ = 0;
  /// Since when the guest's own buffers have come back without its being interrupted.
  std::optional<uint64_t> untold_since_ms_;
};

}  // namespace gantry::vmm::vsock
