// SPDX-License-Identifier: Apache-2.0
//
// Packets of the guest. Each is taken whole and at once. What is none of a stream that there is
// gets a reset, as a guest can be sure of nothing else; what is not from it, or not for the host,
// nothing.
#include <sys/socket.h>

#include <array>

#include "plugins/vmm/vsock/device.h"
#include "plugins/vmm/vsock/host_socket.h"
#include "plugins/vmm/vsock/pieces.h"

namespace gantry::vmm::vsock {

void Device::TakeFromGuest() {
  std::array<iovec, Virtqueue::kMaxPieces> pieces{};
  Chain chain;
  guest_waits_ = false;
  const uint32_t most = from_guest_.size();
  for (uint32_t count = 0; count < most; ++count) {
    const Virtqueue::Next next = from_guest_.Pop(pieces, chain);
    if (next == Virtqueue::Next::kBroken) {
      Break("for the device");
      return;
    }
    if (next == Virtqueue::Next::kEmpty) {
      from_guest_.Publish();
      return;
    }
    TakeChain(std::span(pieces).first(chain.pieces), chain.bytes);
    from_guest_.Push(chain.head, 0);
  }
  from_guest_.Publish();
  // The others have their turn before the rest.
  guest_waits_ = true;
}

void Device::TakeChain(std::span<iovec> pieces, uint64_t bytes) {
  if (bytes < kHeaderBytes) {
    return;
  }
  PacketHeader header;
  CopyOut(pieces, &header, kHeaderBytes);
  if (header.source_cid != settings_.guest_cid || header.target_cid != kHostCid) {
    return;
  }
  if (header.type != static_cast<uint16_t>(PacketType::kStream) ||
      header.length > bytes - kHeaderBytes) {
    if (header.op != static_cast<uint16_t>(PacketOp::kReset)) {
      header.op = 0;
    }
    header.length = 0;
  }
  TakePacket(header, Trim(Skip(pieces, kHeaderBytes), header.length));
}

void Device::TakePacket(const PacketHeader& header, std::span<iovec> data) {
  const Ports ports{.guest = header.source_port, .host = header.target_port};
  Stream* const stream = table_.Find(ports);
  const auto op = static_cast<PacketOp>(header.op);
  if (stream != nullptr) {
    TakeForStream(*stream, header, data);
    FlushToHost(*stream);
    table_.Queue(*stream);
  } else if (op == PacketOp::kRequest) {
    TakeRequest(header, ports);
  } else if (op != PacketOp::kReset) {
    resets_.Add(ports);
  }
}

void Device::TakeRequest(const PacketHeader& header, const Ports& ports) {
  Stream* const stream = table_.Add(StreamState::kDialing);
  if (stream == nullptr) {
    resets_.Add(ports);
    return;
  }
  table_.Name(*stream, ports);
  stream->to_guest.Learn(header.window, header.forwarded);
  stream->since = now_ms_;
  ++dials_;
  TryDial(*stream);
}

void Device::TakeForStream(Stream& stream, const PacketHeader& header, std::span<iovec> data) {
  const auto op = static_cast<PacketOp>(header.op);
  if (op == PacketOp::kReset) {
    Leave(stream, false);
    return;
  }
  if (stream.state == StreamState::kEnding) {
    return;  // It is about to be told.
  }
  stream.to_guest.Learn(header.window, header.forwarded);
  stream.asked = stream.asked && stream.to_guest.Free() == 0;
  if (!stream.IsOpen() && op != PacketOp::kResponse) {
    Abort(stream);
    return;
  }
  switch (op) {
    case PacketOp::kResponse:
      TakeResponse(stream);
      return;
    case PacketOp::kData:
      TakeData(stream, data, header.length);
      return;
    case PacketOp::kShutdown:
      TakeShutdown(stream, header.flags);
      return;
    case PacketOp::kCreditRequest:
      stream.owes |= kOwesCreditUpdate;
      return;
    case PacketOp::kCreditUpdate:
      return;
    default:
      Abort(stream);
      return;
  }
}

void Device::TakeResponse(Stream& stream) {
  const bool was_asked =
      stream.state == StreamState::kRequested && (stream.owes & kOwesRequest) == 0;
  if (!was_asked || !AnswerGreeting(stream.host.get(), stream.ports.host)) {
    Abort(stream);
    return;
  }
  stream.state = StreamState::kOpen;
  stream.readable = true;
  stream.writable = true;
}

void Device::TakeShutdown(Stream& stream, uint32_t flags) {
  stream.guest_ended |= static_cast<uint8_t>(flags & kNeither);
  if (stream.guest_ended == kNeither) {
    Leave(stream, true);
  } else if ((stream.guest_ended & kNoMoreReceives) != 0 && stream.host) {
    // Who writes there learns that nobody reads.
    shutdown(stream.host.get(), SHUT_RD);
  }
}

void Device::TakeData(Stream& stream, std::span<iovec> data, uint32_t size) {
  if ((stream.guest_ended & kNoMoreSends) != 0 || !stream.from_guest.Receive(size)) {
    Abort(stream);
    return;
  }
  while (!data.empty() && stream.backlog.IsEmpty() && stream.writable && !stream.host_deaf) {
    const Moved moved = SendPieces(stream.host.get(), data);
    if (moved.step == Step::kOver) {
      HostLeft(stream);
    } else if (moved.step == Step::kLater) {
      stream.writable = false;
    }
    stream.from_guest.Forward(static_cast<uint32_t>(moved.bytes));
    data = Skip(data, moved.bytes);
  }
  size_t left = 0;
  for (const iovec& one : data) {
    left += one.iov_len;
  }
  if (stream.host_deaf) {
    stream.from_guest.Forward(static_cast<uint32_t>(left));
  } else if (!stream.backlog.Append(data)) {
    Abort(stream);
  }
}

void Device::Abort(Stream& stream) {
  const bool guest_knows = stream.named && (stream.state != StreamState::kRequested ||
                                            (stream.owes & kOwesRequest) == 0);
  stream.backlog.Clear();
  Leave(stream, guest_knows);
  LoseHostEnd(stream);
}

void Device::Leave(Stream& stream, bool tell) {
  dials_ -= stream.state == StreamState::kDialing ? 1 : 0;
  greetings_ -= stream.state == StreamState::kGreeting ? 1 : 0;
  // Of one that never was open nothing can have come.
  if (!stream.IsOpen() && stream.state != StreamState::kEnding) {
    LoseHostEnd(stream);
  }
  stream.state = StreamState::kEnding;
  stream.owes = tell ? kOwesReset : uint8_t{0};
  table_.Queue(stream);
}

}  // namespace gantry::vmm::vsock
