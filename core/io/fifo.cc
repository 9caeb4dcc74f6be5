// SPDX-License-Identifier: Apache-2.0
//
// Opening containerd's fifos, and knowing when they have been read out. To wait for a reader an
// inotify watch is set after our own openings and before the last look, so that no opening is
// missed and none of ours is taken for the client's. When all writers are gone and something is
// left in the pipe, a write end is opened before the read end is let go: else the client would
// see neither the rest nor the end.
#include "core/io/fifo.h"

#include <sys/epoll.h>

#include <condition_variable>

#include <gantry/format.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/async/ask.h"
#include "core/os/splice.h"

namespace gantry::io {

namespace {

/// How often a rest is looked at where the kernel gives no inotify watch, and whether a wait for a
/// reader is given up.
constexpr auto kPollInterval = std::chrono::milliseconds(100);

const char* NameOf(Stream stream) {
  return stream == Stream::kStdin ? "stdin" : stream == Stream::kStdout ? "stdout" : "stderr";
}

/// Whether a fifo has been opened since this was made, for a thread that waits.
class Opened {
 public:
  /// Blocks: for the IO thread. Errors: as `FileUses::Watch`.
  static Result<std::unique_ptr<Opened>> Watch(Relay& relay, int fd) {
    auto opened = std::make_unique<Opened>(relay);
    GANTRY_TRY(opened->use_, async::Call(relay.loop(), [&] {
                 return relay.uses().Watch(fd, [seen = opened->seen_] { seen->Set(); });
               }));
    return opened;
  }

  explicit Opened(Relay& relay) : relay_(relay) {}

  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  ~Opened() {
    relay_.Post([&relay = relay_, use = use_] { relay.uses().Unwatch(use); });
  }

  bool WaitFor(std::chrono::nanoseconds limit) { return seen_->WaitFor(limit); }

 private:
  /// Set on the IO thread.
  class Seen {
   public:
    void Set() {
      const MutexLock lock(mutex_);
      set_ = true;
      changed_.notify_all();
    }

    bool WaitFor(std::chrono::nanoseconds limit) {
      MutexLock lock(mutex_);
      return changed_.wait_for(lock.native(), limit,
                               [this]() GANTRY_REQUIRES(mutex_) { return set_; });
    }

   private:
    Mutex mutex_;
    std::condition_variable changed_;
    bool set_ GANTRY_GUARDED_BY(mutex_) = false;
  };

  Relay& relay_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  UseId use_ = 0;
};

/// The write end of a fifo whose reader is not there yet, when it is.
Result<UniqueFd> AwaitReader(Relay& relay, const NamedFifo& fifo, const GivenUp& given_up,
                             Deadline deadline) {
  // Watched only after our own openings, so that what is seen is the client's.
  GANTRY_TRY(UniqueFd write_end, os::OpenWriteEnd(fifo.name.get()));
  GANTRY_TRY(const auto opened, Opened::Watch(relay, fifo.name.get()));
  if (os::HasReader(write_end.get())) {
    return write_end;
  }
  // It need not be there any more when we look: it was, and that is enough.
  while (true) {
    const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
    if (opened->WaitFor(std::min<std::chrono::nanoseconds>(left, kPollInterval))) {
      return write_end;
    }
    if (given_up && *given_up) {
      return Fail(Code::kCanceled, "open {} '{}': the caller has gone", NameOf(fifo.stream),
                  fifo.path);
    }
    if (left.count() <= 0) {
      return Fail(Code::kDeadlineExceeded, "open {} '{}': nobody opened it for reading",
                  NameOf(fifo.stream), fifo.path);
    }
  }
}

void Widen(int pipe, const FifoOptions& options) {
  IgnoreError(os::SetPipeSize(pipe, options.pipe_bytes), "a narrow pipe is slower, not wrong");
}

}  // namespace

Result<NamedFifo> FindFifo(Stream stream, std::string path, const FifoOptions& options) {
  auto name = os::OpenName(path);
  if (!name) {
    return std::unexpected(std::move(name).error().Within(Format("open {}", NameOf(stream))));
  }
  if (!os::IsFifo(name->get())) {
    return Fail(Code::kInvalidArgument, "open {} '{}': not a fifo", NameOf(stream), path);
  }
  if (options.uid || options.gid) {
    GANTRY_CHECK_OK(os::ChangeOwner(name->get(), options.uid, options.gid));
  }
  return NamedFifo{stream, std::move(path), std::move(*name)};
}

Result<FifoEnds> OpenOutputFifo(Relay& relay, const NamedFifo& fifo, const FifoOptions& options,
                                Deadline deadline) {
  FifoEnds ends;
  auto write_end = os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kWrite);
  if (!write_end && write_end.error().sys_errno == ENXIO) {
    write_end = AwaitReader(relay, fifo, options.given_up, deadline);
  }
  GANTRY_TRY(ends.process, std::move(write_end));
  GANTRY_TRY(ends.hold, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kRead));
  Widen(ends.hold.get(), options);
  return ends;
}

Result<FifoEnds> OpenInputFifo(const NamedFifo& fifo, const FifoOptions& options) {
  FifoEnds ends;
  GANTRY_TRY(ends.process, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kRead));
  GANTRY_TRY(ends.hold, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kWrite));
  Widen(ends.hold.get(), options);
  return ends;
}

void OutputHold::Begin() {
  // EPOLLPRI never comes from a pipe: the watch is for the hang-up alone, so
  // that data does not wake us.
  watch_ = relay_.loop().Watch(read_end_.get(), EPOLLPRI,
                               [self = shared_from_this()](uint32_t) { self->OnWritersGone(); });
}

void OutputHold::Release() {
  relay_.loop().Unwatch(std::exchange(watch_, {}));
  relay_.loop().Cancel(std::exchange(timer_, {}));
  relay_.uses().Unwatch(std::exchange(use_, 0));
  write_end_.reset();
  {
    const MutexLock lock(mutex_);
    read_end_.reset();
  }
  on_written_ = nullptr;
  on_read_out_ = nullptr;
}

size_t OutputHold::UnreadBytes() const {
  const MutexLock lock(mutex_);
  return read_end_ ? os::BytesQueued(read_end_.get()).value_or(0) : 0;
}

bool OutputHold::Empty() const { return UnreadBytes() == 0; }

void OutputHold::OnWritersGone() {
  const auto self = shared_from_this();
  relay_.loop().Unwatch(std::exchange(watch_, {}));
  if (auto on_written = std::exchange(on_written_, nullptr)) {
    on_written();
  }
  if (!Empty()) {
    auto write_end = os::OpenPipeEnd(read_end_.get(), os::PipeEnd::kWrite);
    if (write_end) {
      write_end_ = std::move(*write_end);
      WatchUse();
    }
  }
  CheckEmpty();
}

void OutputHold::WatchUse() {
  const auto use =
      relay_.uses().Watch(read_end_.get(), [self = shared_from_this()] { self->CheckEmpty(); });
  if (!use) {
    Poll();
    return;
  }
  use_ = *use;
}

void OutputHold::Poll() {
  timer_ = relay_.loop().After(kPollInterval, [self = shared_from_this()] {
    self->timer_ = {};
    self->CheckEmpty();
    if (self->read_end_) {
      self->Poll();
    }
  });
}

void OutputHold::CheckEmpty() {
  if (write_end_ && !Empty()) {
    return;
  }
  auto on_read_out = std::exchange(on_read_out_, nullptr);
  Release();
  if (on_read_out) {
    on_read_out();
  }
}

}  // namespace gantry::io
