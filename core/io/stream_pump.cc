// SPDX-License-Identifier: Apache-2.0
//
// A turn of a pump moves what it can, and then waits for what it could not: for the pipe, the
// connection, or a client that connects. What belongs to the client alone (a frame that is none, a
// connection that breaks) ends with its connection; the pipe is the process's and stays.
#include "core/io/stream_pump.h"

#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/format.h>

#include "core/io/relay.h"
#include "core/os/poll.h"
#include "core/os/splice.h"

namespace gantry::io {
namespace {

using Moved = StreamWire::Moved;

/// Frames of one stream before the others get their turn.
constexpr int kFramesPerTurn = 16;
/// So long a process that was deleted has a client that reads its last output.
constexpr auto kLinger = std::chrono::seconds(10);

}  // namespace

StreamPump::StreamPump(Relay& relay, UniqueFd pipe, async::AccountPtr account, StreamEvents events)
    : relay_(relay),
      account_(std::move(account)),
      events_(std::move(events)),
      pipe_(std::move(pipe)) {}

StreamPump::~StreamPump() = default;

async::Loop& StreamPump::loop() const { return relay_.loop(); }

size_t StreamPump::Queued() const {
  const MutexLock lock(mutex_);
  return pipe_ ? os::BytesQueued(pipe_.get()).value_or(0) : 0;
}

void StreamPump::Attach(std::unique_ptr<StreamWire> wire) {
  if (closed_) {
    return;
  }
  LeaveWire();
  wire_ = std::move(wire);
  OnAttached();
  Run();
}

void StreamPump::Run() {
  if (closed_) {
    return;
  }
  const auto self = shared_from_this();
  const async::Charged charged(account_);
  Wants wants;
  if (wire_ && !Move(wants)) {
    wants = {};
  }
  if (!wire_) {
    WithoutWire();
  }
  if (closed_) {
    return;
  }
  if (wants.again) {
    loop().Post([self] { self->Run(); });
  }
  if (pipe_) {
    Arm(pipe_watch_, pipe_.get(), wants.pipe ? PipeEvents() : 0U);
  }
  if (wire_) {
    const uint32_t receive = wants.to_receive ? uint32_t{EPOLLIN} : 0U;
    // What is there does not make it ready again.
    const uint32_t more = wants.more ? uint32_t{EPOLLET} : 0U;
    Arm(wire_watch_, wire_->socket(), receive | more | (wants.to_send ? uint32_t{EPOLLOUT} : 0U));
  }
}

void StreamPump::Arm(Side& side, int fd, uint32_t events) {
  if (side.events == events) {
    return;
  }
  side.events = events;
  if (side.watch) {
    loop().Rearm(side.watch, events);
    return;
  }
  side.watch = loop().Watch(fd, events, [weak = weak_from_this()](uint32_t) {
    if (const auto pump = weak.lock()) {
      pump->Run();
    }
  });
}

void StreamPump::Disarm(Side& side) {
  loop().Unwatch(side.watch);
  side = Side();
}

void StreamPump::ClosePipe() {
  Disarm(pipe_watch_);
  const MutexLock lock(mutex_);
  pipe_.reset();
}

void StreamPump::LeaveWire() {
  if (!wire_) {
    return;
  }
  Disarm(wire_watch_);
  wire_->Close();
  const uint64_t number = wire_->number();
  wire_.reset();
  OnLeft();
  events_.left(number);
}

void StreamPump::GiveUpWire(const std::string& what) {
  events_.wrong(what);
  LeaveWire();
}

void StreamPump::TellEnded() { events_.ended(); }

void StreamPump::Close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  Disarm(wire_watch_);
  if (wire_) {
    wire_->Close();
    wire_.reset();
  }
  ClosePipe();
}

void StreamPump::Abandon() {
  if (std::exchange(closed_, true)) {
    return;
  }
  Disarm(wire_watch_);
  wire_.reset();
  ClosePipe();
}

// --- Output ---------------------------------------------------------------------

OutputStream::OutputStream(Relay& relay, UniqueFd pipe, async::AccountPtr account,
                           StreamEvents events)
    : StreamPump(relay, std::move(pipe), std::move(account), std::move(events)) {
  at_end_ = this->pipe() < 0;
}

uint32_t OutputStream::PipeEvents() const { return EPOLLIN; }

bool OutputStream::Move(Wants& wants) {
  const Result<Moved> received = wire()->ReceiveOn(-1);
  if (!received) {
    GiveUpWire(received.error().message);
    return false;
  }
  switch (*received) {
    case Moved::kBad:
      GiveUpWire("the client of an output sent what is no window");
      return false;
    case Moved::kEnded:
    case Moved::kGone: {
      // It has heard all, or hears nothing any more.
      const bool heard = wire()->sent_end();
      LeaveWire();
      if (heard) {
        TellEnded();
      }
      return false;
    }
    default:
      wants.to_receive = true;
      wants.more = *received == Moved::kFramePart;
  }
  const bool there = MoveOut(wants);
  in_part_ = there ? wire()->InPart() : 0;
  return there;
}

bool OutputStream::MoveOut(Wants& wants) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const Result<Moved> sent = wire()->SendOn(pipe());
    if (!sent) {
      GiveUpWire(sent.error().message);
      return false;
    }
    switch (*sent) {
      case Moved::kGone:
        LeaveWire();
        return false;
      case Moved::kSocketFull:
        wants.to_send = true;
        return true;
      case Moved::kPipeEmpty:
        wants.pipe = true;
        return true;
      case Moved::kEnded:
        return true;
      default:
        break;
    }
    const Result<bool> begun = BeginNext(wants);
    if (!begun) {
      GiveUpWire(begun.error().message);
      return false;
    }
    if (!*begun) {
      return true;
    }
  }
  wants.again = true;
  return true;
}

Result<bool> OutputStream::BeginNext(Wants& wants) {
  size_t queued = 0;
  if (!at_end_) {
    // In this order: what comes between the two is seen by the second.
    GANTRY_TRY(queued, os::BytesQueued(pipe()));
    GANTRY_TRY(const uint32_t ready, os::Poll(pipe(), EPOLLIN, {}));
    at_end_ = queued == 0 && (ready & EPOLLHUP) != 0 && (ready & EPOLLIN) == 0;
  }
  if (at_end_) {
    ClosePipe();
    GANTRY_CHECK_OK(wire()->BeginEnd());
    return true;
  }
  const size_t bytes = std::min({queued, kStreamDataBytes, size_t{wire()->window()}});
  if (bytes == 0) {
    wants.pipe = queued == 0;
    return false;
  }
  GANTRY_CHECK_OK(wire()->BeginData(bytes));
  return true;
}

void OutputStream::WithoutWire() {
  if (linger_) {
    loop().Cancel(std::exchange(linger_, {}));
    Close();
  }
}

void OutputStream::Linger() {
  if (closed() || !wire()) {
    Close();
    return;
  }
  const auto self = std::static_pointer_cast<OutputStream>(shared_from_this());
  linger_ = loop().After(kLinger, [self] { self->Close(); });
  Run();
}

// --- Input ----------------------------------------------------------------------

InputStream::InputStream(Relay& relay, UniqueFd pipe, async::AccountPtr account,
                         StreamEvents events)
    : StreamPump(relay, std::move(pipe), std::move(account), std::move(events)) {}

uint32_t InputStream::PipeEvents() const { return EPOLLOUT; }

bool InputStream::Move(Wants& wants) {
  if (pipe() < 0) {
    wire()->Refuse();
    LeaveWire();
    return false;
  }
  const Result<Moved> received = wire()->ReceiveOn(pipe());
  if (!received) {
    GiveUpWire(received.error().message);
    return false;
  }
  switch (*received) {
    case Moved::kBad:
      GiveUpWire("the client of an input sent more than it may, or what is no data");
      return false;
    case Moved::kGone:
      LeaveWire();
      return false;
    case Moved::kEnded:
    case Moved::kReaderGone:
      End();
      return false;
    case Moved::kPipeFull:
      wants.pipe = true;
      break;
    default:
      wants.to_receive = true;
      wants.more = *received == Moved::kFramePart;
  }
  return Allow(wants);
}

bool InputStream::Allow(Wants& wants) {
  for (;;) {
    // First: what an engine that was killed had begun may have been heard and used up by now.
    const Result<Moved> sent = wire()->SendOn(-1);
    if (!sent) {
      GiveUpWire(sent.error().message);
      return false;
    }
    // Of a client that has gone there may still be something to be passed on.
    wants.to_send = *sent == Moved::kSocketFull;
    const uint64_t window = wire()->window();
    if (*sent != Moved::kIdle || wire()->receiving() || window > kStreamWindowBytes / 2) {
      return true;
    }
    const Status begun = wire()->BeginWindow(static_cast<uint32_t>(kStreamWindowBytes - window));
    if (!begun) {
      GiveUpWire(begun.error().message);
      return false;
    }
  }
}

void InputStream::WithoutWire() {
  if (ends_with_connection_ && pipe() >= 0) {
    End();
  }
}

void InputStream::EndWithConnection() {
  ends_with_connection_ = true;
  Run();
}

void InputStream::Refuse() {
  if (!closed() && pipe() >= 0) {
    End();
  }
}

void InputStream::End() {
  ClosePipe();
  if (wire()) {
    wire()->Refuse();
  }
  LeaveWire();
  TellEnded();
}

}  // namespace gantry::io
