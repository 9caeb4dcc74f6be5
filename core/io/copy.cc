// SPDX-License-Identifier: Apache-2.0
//
// One copy, which always waits for one side only: for bytes or for room. Bytes move by splice(2)
// so that an engine that is killed has none in its memory; reading and writing is for what refuses
// splice, and then nothing is read before there is room to write it. What happens at an error
// depends on the side and its kind (`OnError`): a process must never block on a client that is
// gone, so its output is read and dropped.
#include "core/io/copy.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/poll.h"
#include "core/os/splice.h"
#include "core/os/terminal.h"

namespace gantry::io {

namespace {

/// Moves of one copy before the others get their turn.
constexpr int kMovesPerTurn = 16;

/// A terminal gives no more than a page at once, and a longer splice from it
/// allocates pages that it does not use. Measured on Linux 6.18: 4 KiB
/// 281 MB/s, 16 KiB 270 MB/s, 64 KiB 191 MB/s.
constexpr size_t kTerminalChunk = size_t{4} << 10;
constexpr size_t kChunk = size_t{64} << 10;

/// So often in a row may splice(2) find nothing where poll(2) sees something. Bytes that
/// are read instead are in the engine's memory for a moment, and lost if it is killed
/// just then: the last resort.
constexpr int kSpliceTries = 64;

}  // namespace

Copy::Copy(async::Loop& loop, CopySpec spec, std::function<void()> done)
    : loop_(loop), spec_(std::move(spec)), done_(std::move(done)) {
  chunk_bytes_ = os::IsTerminal(spec_.source.get()) ? kTerminalChunk : kChunk;
  IgnoreError(SetNonblocking(spec_.source.get(), true), "every kind of source takes it");
  if (spec_.sink) {
    IgnoreError(SetNonblocking(spec_.sink.get(), true), "every kind of sink takes it");
  }
  dropping_ = spec_.sink_kind == SinkKind::kNone;
}

Copy::~Copy() { Close(); }

void Copy::Run() {
  const auto self = shared_from_this();
  const async::Charged charged(spec_.account);
  loop_.Cancel(std::exchange(idle_timer_, {}));
  for (int i = 0; i < kMovesPerTurn; ++i) {
    const Step step = Move();
    if (step == Step::kEnded) {
      return;
    }
    if (step == Step::kSourceEmpty && finishing_) {
      End(CopyEnd::kFinished);
      return;
    }
    if (step == Step::kSourceEmpty || step == Step::kSinkFull) {
      WaitFor(step);
      return;
    }
  }
  if (finishing_) {
    // The source may have become empty just now, and would never tell.
    loop_.Post([self] {
      if (self->spec_.source) {
        self->Run();
      }
    });
    return;
  }
  WaitFor(pending_.empty() ? Step::kSourceEmpty : Step::kSinkFull);
}

void Copy::Finish() {
  finishing_ = true;
  if (sink_watch_.events == 0) {
    Run();
  }
}

void Copy::FinishWhenIdle(async::Duration idle) {
  idle_limit_ = idle;
  if (sink_watch_.events == 0) {
    Run();
  }
}

void Copy::OnIdle() {
  finishing_ = os::BytesQueued(SourceFd()).value_or(0) == 0;
  Run();
}

void Copy::Flush() {
  if (spec_.sink_kind == SinkKind::kPipe && !dropping_) {
    const size_t more = os::PipeSize(spec_.source.get()).value_or(0);
    const size_t now = os::PipeSize(spec_.sink.get()).value_or(0);
    if (more > 0 && now > 0) {
      IgnoreError(os::SetPipeSize(spec_.sink.get(), now + more), "then less of it is moved");
    }
  }
  Run();
}

void Copy::Abandon() {
  spec_.on_end = nullptr;
  Close();
}

int Copy::SourceFd() const { return spec_.feed ? spec_.feed->fd() : spec_.source.get(); }

std::optional<Copy::Step> Copy::FillSource() {
  const auto filled = spec_.feed->Fill();
  if (!filled) {
    End(filled.error().sys_errno == ECONNRESET ? CopyEnd::kCutOff : CopyEnd::kError);
    return Step::kEnded;
  }
  switch (*filled) {
    case Feed::Filled::kSome:
      return std::nullopt;
    case Feed::Filled::kNothing:
      return Step::kSourceEmpty;
    case Feed::Filled::kEnded:
      End(CopyEnd::kFinished);
      return Step::kEnded;
    case Feed::Filled::kCutOff:
      End(CopyEnd::kCutOff);
      return Step::kEnded;
  }
  std::unreachable();
}

Copy::Step Copy::Move() {
  if (spec_.feed && pending_.empty()) {
    if (const std::optional<Step> step = FillSource()) {
      return *step;
    }
  }
  if (dropping_) {
    return Drop();
  }
  if (!pending_.empty()) {
    return WritePending();
  }
  if (spec_.signals) {
    if (const std::optional<Step> step = PeekForSignals()) {
      return *step;
    }
  }
  return copying_ ? MoveByCopy() : MoveBySplice();
}

/// None: `chunk_bytes_` may be moved now.
std::optional<Copy::Step> Copy::PeekForSignals() {
  const auto next = spec_.signals->Peek(spec_.source.get(), spec_.sink.get());
  if (!next) {
    return OnError(next.error());
  }
  if (next->end) {
    End(CopyEnd::kFinished);
    return Step::kEnded;
  }
  if (next->would_block) {
    return Step::kSourceEmpty;
  }
  chunk_bytes_ = next->bytes;
  return std::nullopt;
}

void Copy::Moved(size_t bytes) {
  if (!spec_.signals) {
    return;
  }
  if (const int signal = spec_.signals->Moved(bytes); signal != 0) {
    // Else the kernel would throw away what a program says to it.
    IgnoreError(os::SettleInput(spec_.sink.get()), "the signal is due all the same");
    spec_.on_signal(signal);
  }
}

Copy::Step Copy::MoveBySplice() {
  if (spec_.sink_kind == SinkKind::kFile) {
    // Each time anew: others may append, too, or have truncated the file.
    IgnoreError(os::SeekToEnd(spec_.sink.get()), "a device has no end");
  }
  const auto moved = os::Splice(spec_.source.get(), spec_.sink.get(), chunk_bytes_);
  if (!moved) {
    return OnError(moved.error());
  }
  if (moved->end) {
    End(CopyEnd::kFinished);
    return Step::kEnded;
  }
  if (moved->would_block) {
    return OnBlocked();
  }
  blocked_in_a_row_ = 0;
  Moved(moved->bytes);
  return Step::kMoved;
}

Copy::Step Copy::MoveByCopy() {
  // A pipe that is writable has room for a page, so nothing stays behind in
  // the buffer; other destinations may take less.
  if (!SinkWritable()) {
    return Step::kSinkFull;
  }
  const auto got = os::ReadSome(spec_.source.get(),
                                std::span(buffer_).first(std::min(chunk_bytes_, buffer_.size())));
  if (!got) {
    return OnError(got.error());
  }
  if (got->end) {
    End(CopyEnd::kFinished);
    return Step::kEnded;
  }
  if (got->would_block) {
    return Step::kSourceEmpty;
  }
  pending_ = std::span(buffer_).first(got->bytes);
  return WritePending();
}

Copy::Step Copy::WritePending() {
  if (spec_.sink_kind == SinkKind::kFile) {
    IgnoreError(os::SeekToEnd(spec_.sink.get()), "a device has no end");
  }
  const auto put = os::WriteSome(spec_.sink.get(), pending_);
  if (!put) {
    dropped_bytes_ += std::exchange(pending_, {}).size();
    return spec_.sink_kind == SinkKind::kFile ? Step::kMoved : OnError(put.error());
  }
  if (put->would_block) {
    return Step::kSinkFull;
  }
  pending_ = pending_.subspan(put->bytes);
  Moved(put->bytes);
  return Step::kMoved;
}

Copy::Step Copy::Drop() {
  const auto got = os::ReadSome(spec_.source.get(), buffer_);
  if (!got || got->end) {
    End(got ? CopyEnd::kFinished : CopyEnd::kError);
    return Step::kEnded;
  }
  if (got->would_block) {
    return Step::kSourceEmpty;
  }
  dropped_bytes_ += got->bytes;
  return Step::kMoved;
}

Copy::Step Copy::OnBlocked() {
  if (!SinkWritable()) {
    return Step::kSinkFull;
  }
  const auto ready = os::Poll(spec_.source.get(), EPOLLIN, {});
  if (!ready || *ready == 0) {
    return Step::kSourceEmpty;
  }
  // Something came meanwhile: try again. If that does not help, this kernel's
  // splice does not see what there is, and reading tells.
  return ++blocked_in_a_row_ < kSpliceTries ? Step::kMoved : MoveByCopy();
}

Copy::Step Copy::OnError(const Error& error) {
  if (error.code == Code::kInvalidArgument && !copying_) {
    copying_ = true;
    return Step::kMoved;
  }
  const bool sink_refused = error.sys_errno == EPIPE || spec_.sink_kind == SinkKind::kFile ||
                            spec_.sink_kind == SinkKind::kTerminal ||
                            spec_.sink_kind == SinkKind::kFramedSocket ||
                            spec_.sink_kind == SinkKind::kSocket;
  if (!sink_refused) {
    // A terminal whose other side is closed and that has been read to its end gives EIO; a
    // peer that vanished, a reset.
    const bool source_gone = error.sys_errno == EIO || error.sys_errno == ECONNRESET;
    End(source_gone ? CopyEnd::kFinished : CopyEnd::kError);
    return Step::kEnded;
  }
  switch (spec_.sink_kind) {
    case SinkKind::kPipe:
      dropping_ = true;
      return Step::kMoved;
    case SinkKind::kFile:
      // What comes later may find room again.
      return Drop();
    default:
      End(CopyEnd::kSinkGone);
      return Step::kEnded;
  }
}

bool Copy::SinkWritable() const {
  const auto ready = os::Poll(spec_.sink.get(), EPOLLOUT, {});
  return !ready || *ready != 0;
}

void Copy::WaitFor(Step side) {
  const bool for_sink = side == Step::kSinkFull;
  Arm(source_watch_, SourceFd(), for_sink ? 0U : uint32_t{EPOLLIN});
  Arm(sink_watch_, spec_.sink.get(), for_sink ? uint32_t{EPOLLOUT} : 0U);
  if (idle_limit_ && !for_sink) {
    idle_timer_ = loop_.After(*idle_limit_, [self = weak_from_this()] {
      if (const auto copy = self.lock()) {
        copy->OnIdle();
      }
    });
  }
}

void Copy::Arm(Side& side, int fd, uint32_t events) {
  if (side.events == events) {
    return;
  }
  side.events = events;
  if (side.watch) {
    loop_.Rearm(side.watch, events);
    return;
  }
  side.watch = loop_.Watch(fd, events, [self = weak_from_this()](uint32_t) {
    if (const auto copy = self.lock()) {
      copy->Run();
    }
  });
}

void Copy::End(CopyEnd end) {
  if (spec_.sink_kind == SinkKind::kSocket && spec_.sink) {
    IgnoreError(os::ShutDownWriting(spec_.sink.get()), "the peer may be gone");
  }
  const auto self = shared_from_this();
  auto on_end = std::exchange(spec_.on_end, nullptr);
  Close();
  if (on_end) {
    on_end(end, dropped_bytes_);
  }
}

void Copy::Close() {
  loop_.Unwatch(std::exchange(source_watch_, {}).watch);
  loop_.Unwatch(std::exchange(sink_watch_, {}).watch);
  loop_.Cancel(std::exchange(idle_timer_, {}));
  spec_.source.reset();
  spec_.feed.reset();
  spec_.sink.reset();
  if (auto done = std::exchange(done_, nullptr)) {
    done();
  }
}

}  // namespace gantry::io
