// SPDX-License-Identifier: Apache-2.0
//
// Packets for the guest: streams in turn, each with what it owes, then with data straight from the
// host's socket, then with its end. Where the guest has no buffers they wait, in the order in which
// they are.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "plugins/vmm/vsock/device.h"
#include "plugins/vmm/vsock/host_socket.h"
#include "plugins/vmm/vsock/pieces.h"

namespace gantry::vmm::vsock {
namespace {

constexpr size_t kTurnBytes = 65536;

PacketOp OpOf(uint8_t owed) {
  switch (owed) {
    case kOwesReset:
      return PacketOp::kReset;
    case kOwesRequest:
      return PacketOp::kRequest;
    case kOwesResponse:
      return PacketOp::kResponse;
    case kOwesCreditUpdate:
      return PacketOp::kCreditUpdate;
    default:
      return PacketOp::kCreditRequest;
  }
}

}  // namespace

void Device::GiveToGuest() {
  GiveResets();
  const size_t turns = table_.queued();
  for (size_t turn = 0; turn < turns && !starved_; ++turn) {
    Stream& stream = *table_.Next();
    if (!GiveOwed(stream) || !GiveData(stream) || !GiveShutdown(stream)) {
      if (broken_) {
        return;  // There are no streams any more.
      }
      // It is the next one when there are buffers.
      starved_ = true;
      table_.QueueFirst(stream);
      break;
    }
    if (stream.state == StreamState::kEnding) {
      table_.Unname(stream);
      if (stream.backlog.IsEmpty()) {
        table_.Remove(stream);
      }
    }
  }
  to_guest_.Publish();
}

void Device::GiveResets() {
  while (!starved_ && !resets_.IsEmpty()) {
    if (!Give(resets_.front(), nullptr, PacketOp::kReset, 0)) {
      starved_ = true;
      return;
    }
    resets_.Pop();
  }
}

bool Device::GiveOwed(Stream& stream) {
  if (stream.IsOpen() && stream.from_guest.MustTell()) {
    stream.owes |= kOwesCreditUpdate;
  }
  while (stream.owes != 0) {
    const auto owed = static_cast<uint8_t>(1U << std::countr_zero(stream.owes));
    if (!Give(stream.ports, &stream, OpOf(owed), 0)) {
      return false;
    }
    stream.from_guest.Told();
    stream.owes = static_cast<uint8_t>(stream.owes & ~owed);
  }
  return true;
}

bool Device::GiveShutdown(Stream& stream) {
  const auto ended = static_cast<uint8_t>((stream.host_ended ? kNoMoreSends : 0) |
                                          (stream.host_deaf ? kNoMoreReceives : 0));
  if (!stream.IsOpen() || (ended & ~stream.guest_told) == 0) {
    return true;
  }
  if (!Give(stream.ports, &stream, PacketOp::kShutdown, ended)) {
    return false;
  }
  stream.from_guest.Told();
  stream.guest_told = ended;
  if (ended == kNeither) {
    LoseHostEnd(stream);
  }
  return true;
}

bool Device::GiveData(Stream& stream) {
  if (!stream.IsOpen() || !stream.readable || stream.host_ended ||
      (stream.guest_ended & kNoMoreReceives) != 0) {
    return true;
  }
  const size_t credit = stream.to_guest.Free();
  if (credit == 0) {
    if (!stream.asked && !Give(stream.ports, &stream, PacketOp::kCreditRequest, 0)) {
      return false;
    }
    stream.asked = true;
    return true;
  }
  std::array<iovec, kPieces> data{};
  size_t pieces = 0;
  const size_t buffers = TakeBuffers(stream.burst, std::min(credit, kTurnBytes), data, pieces);
  if (buffers == 0) {
    return false;
  }
  const Moved moved = ReceivePieces(stream.host.get(), std::span(data).first(pieces));
  stream.readable = moved.step != Step::kLater;
  stream.host_ended = moved.step == Step::kOver;
  FillBuffers(stream, buffers, moved.bytes);
  if (stream.readable && !stream.host_ended) {
    table_.Queue(stream);
  }
  return true;
}

Virtqueue::Next Device::TakeBuffer(std::span<iovec> pieces, Chain& chain) {
  const Virtqueue::Next next = to_guest_.Pop(pieces, chain);
  // Every driver puts the header into one piece, and has more room than that.
  const bool is_small = next == Virtqueue::Next::kChain &&
                        (chain.bytes <= kHeaderBytes || pieces.front().iov_len < kHeaderBytes);
  if (next == Virtqueue::Next::kBroken || is_small) {
    Break("for the guest");
    return Virtqueue::Next::kBroken;
  }
  return next;
}

/// Up to `most` of the guest's buffers, in `buffers_`, with room for `most_bytes` at most. Their
/// pieces for data are put into `data`, `pieces` of them. Returns how many buffers there are.
size_t Device::TakeBuffers(size_t most, size_t most_bytes, std::span<iovec> data, size_t& pieces) {
  size_t count = 0;
  while (count < most && most_bytes > 0) {
    Chain chain;
    const std::span<iovec> room = data.subspan(pieces);
    if (TakeBuffer(room, chain) != Virtqueue::Next::kChain) {
      break;
    }
    auto* const header = static_cast<std::byte*>(room.front().iov_base);
    const std::span<iovec> all = room.first(chain.pieces);
    const std::span<iovec> rest = Trim(Skip(all, kHeaderBytes), most_bytes);
    // Where the header had a piece of its own they move up.
    std::ranges::copy(rest, room.begin());
    pieces += rest.size();
    const size_t capacity = std::min<size_t>(chain.bytes - kHeaderBytes, most_bytes);
    most_bytes -= capacity;
    buffers_[count++] = {.head = chain.head, .header = header, .capacity = capacity};
  }
  return broken_ ? 0 : count;
}

/// The first of the `buffers` have got `bytes`; the others go back unused.
void Device::FillBuffers(Stream& stream, size_t buffers, size_t bytes) {
  stream.to_guest.Send(static_cast<uint32_t>(bytes));
  size_t used = 0;
  size_t left = bytes;
  for (; left > 0; ++used) {
    const Buffer& buffer = buffers_[used];
    const size_t size = std::min(left, buffer.capacity);
    PacketHeader header = HeaderOf(stream.ports, &stream, PacketOp::kData);
    header.length = static_cast<uint32_t>(size);
    memcpy(buffer.header, &header, kHeaderBytes);
    to_guest_.Push(buffer.head, static_cast<uint32_t>(kHeaderBytes + size));
    left -= size;
  }
  to_guest_.Unpop(static_cast<uint16_t>(buffers - used));
  if (bytes == 0) {
    return;
  }
  stream.from_guest.Told();
  // Who fills all of them has more; who does not takes no more of them than it needs.
  constexpr size_t kFaster = 4;
  stream.burst =
      static_cast<uint8_t>(used == buffers ? std::min(kMaxBurst, stream.burst * kFaster) : used);
}

PacketHeader Device::HeaderOf(const Ports& ports, const Stream* stream, PacketOp op) const {
  PacketHeader header{.source_cid = kHostCid,
                      .target_cid = settings_.guest_cid,
                      .source_port = ports.host,
                      .target_port = ports.guest,
                      .type = static_cast<uint16_t>(PacketType::kStream),
                      .op = static_cast<uint16_t>(op)};
  if (stream != nullptr) {
    header.window = stream->from_guest.window();
    header.forwarded = stream->from_guest.forwarded();
  }
  return header;
}

bool Device::Give(const Ports& ports, const Stream* stream, PacketOp op, uint32_t flags) {
  std::array<iovec, Virtqueue::kMaxPieces> pieces{};
  Chain chain;
  if (TakeBuffer(pieces, chain) != Virtqueue::Next::kChain) {
    return false;
  }
  PacketHeader header = HeaderOf(ports, stream, op);
  header.flags = flags;
  memcpy(pieces.front().iov_base, &header, kHeaderBytes);
  to_guest_.Push(chain.head, kHeaderBytes);
  return true;
}

}  // namespace gantry::vmm::vsock
