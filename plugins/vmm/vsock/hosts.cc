// SPDX-License-Identifier: Apache-2.0
//
// The host's sockets of streams: who is dialled, who dials, and what goes to them.
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "plugins/vmm/vsock/device.h"
#include "plugins/vmm/vsock/host_socket.h"

namespace gantry::vmm::vsock {
namespace {

/// So many may be about to say where they want to; then the oldest one has to go.
constexpr size_t kMaxGreetings = 16;
/// A guest's own patience. Source: Linux 6.12, net/vmw_vsock/af_vsock.c,
/// VSOCK_DEFAULT_CONNECT_TIMEOUT.
constexpr uint64_t kDialMs = 2000;
constexpr uint32_t kHostPorts = 1U << 30;

}  // namespace

/// False: the kernel does not watch it.
bool Device::Watch(Stream& stream) {
  const Event what{.source = Source::kStream,
                   .index = table_.IndexOf(stream),
                   .generation = stream.generation,
                   .ready = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
  return poller_.Add(stream.host.get(), what).has_value();
}

void Device::AcceptHosts(int listener) {
  while (true) {
    UniqueFd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) {
        continue;
      }
      return;  // None, or none can be had: who comes next is another chance.
    }
    if (!is_running()) {
      continue;
    }
    if (greetings_ == kMaxGreetings) {
      DropOldestGreeting();
    }
    Stream* const stream = table_.Add(StreamState::kGreeting);
    if (stream == nullptr) {
      continue;
    }
    ++greetings_;
    stream->host = std::move(socket);
    if (!Watch(*stream)) {
      Abort(*stream);
      continue;
    }
    Greet(*stream);
  }
}

void Device::DropOldestGreeting() {
  Stream* oldest = nullptr;
  table_.ForEach([&oldest](Stream& stream) {
    if (stream.state == StreamState::kGreeting &&
        (oldest == nullptr || stream.generation < oldest->generation)) {
      oldest = &stream;
    }
  });
  if (oldest != nullptr) {
    Abort(*oldest);
  }
}

void Device::Greet(Stream& stream) {
  uint32_t port = 0;
  switch (ReadGreeting(stream.host.get(), port)) {
    case Step::kLater:
      return;
    case Step::kOver:
      Abort(stream);
      return;
    case Step::kDone:
      break;
  }
  --greetings_;
  stream.state = StreamState::kRequested;
  stream.owes = kOwesRequest;
  table_.Name(stream, {.guest = port, .host = FreeHostPort(port)});
  table_.Queue(stream);
}

uint32_t Device::FreeHostPort(uint32_t guest_port) {
  while (true) {
    const uint32_t port = next_host_port_;
    next_host_port_ = kHostPorts + (next_host_port_ + 1) % kHostPorts;
    // There are more of them than streams.
    if (table_.Find({.guest = guest_port, .host = port}) == nullptr) {
      return port;
    }
  }
}

void Device::RetryDials() {
  table_.ForEach([this](Stream& stream) {
    if (stream.state == StreamState::kDialing) {
      TryDial(stream);
    }
  });
}

void Device::TryDial(Stream& stream) {
  const Step step = Dial(settings_.name, stream.ports.host, stream.host);
  if (step == Step::kLater && now_ms_ - stream.since < kDialMs) {
    return;
  }
  if (step != Step::kDone || !Watch(stream)) {
    Abort(stream);
    return;
  }
  --dials_;
  stream.state = StreamState::kOpen;
  stream.readable = true;
  stream.writable = true;
  stream.owes = kOwesResponse;
  table_.Queue(stream);
}

void Device::OnHost(const Event& event) {
  Stream* const stream = table_.At(event.index, event.generation);
  if (stream == nullptr) {
    return;
  }
  const bool gone = (event.ready & (EPOLLHUP | EPOLLERR)) != 0;
  stream->readable = stream->readable || (event.ready & ~uint32_t{EPOLLOUT}) != 0;
  stream->writable = stream->writable || (event.ready & EPOLLOUT) != 0;
  switch (stream->state) {
    case StreamState::kGreeting:
      if (gone) {
        Abort(*stream);
      } else {
        Greet(*stream);
      }
      return;
    case StreamState::kRequested:
      if (gone) {
        Abort(*stream);
      }
      return;
    case StreamState::kDialing:
      return;
    case StreamState::kOpen:
    case StreamState::kEnding:
      if (gone) {
        HostLeft(*stream);
      }
      // The guest's buffers have nothing to do with it.
      FlushToHost(*stream);
      table_.Queue(*stream);
      return;
  }
}

void Device::FlushToHost(Stream& stream) {
  std::array<iovec, 2> pieces{};
  while (!stream.backlog.IsEmpty() && stream.writable) {
    const size_t count = stream.backlog.Front(pieces);
    const Moved moved = SendPieces(stream.host.get(), std::span(pieces).first(count));
    if (moved.step == Step::kOver) {
      HostLeft(stream);
      break;
    }
    stream.writable = moved.step == Step::kDone;
    stream.from_guest.Forward(static_cast<uint32_t>(moved.bytes));
    if (moved.bytes > 0) {
      stream.backlog.Consume(moved.bytes);
    }
  }
  if (!stream.backlog.IsEmpty() || !stream.host) {
    return;
  }
  if (stream.state == StreamState::kEnding) {
    LoseHostEnd(stream);
  } else if ((stream.guest_ended & kNoMoreSends) != 0 && !stream.shut) {
    stream.shut = true;
    shutdown(stream.host.get(), SHUT_WR);
  }
}

/// It takes nothing more.
void Device::HostLeft(Stream& stream) {
  stream.host_deaf = true;
  stream.from_guest.Forward(static_cast<uint32_t>(stream.backlog.size()));
  stream.backlog.Clear();
}

void Device::LoseHostEnd(Stream& stream) {
  stream.host.reset();
  stream.readable = false;
  stream.writable = false;
}

}  // namespace gantry::vmm::vsock
