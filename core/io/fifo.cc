// SPDX-License-Identifier: Apache-2.0
#include "core/io/fifo.h"

#include <sys/epoll.h>

#include <gantry/format.h>

#include "core/os/poll.h"
#include "core/os/splice.h"

namespace gantry::io {

namespace {

/// How often a rest is looked at where the kernel gives no inotify instance
/// (fs.inotify.max_user_instances), and whether a wait for a reader is given up.
constexpr auto kLookAgain = std::chrono::milliseconds(100);

const char* NameOf(Stream stream) {
  return stream == Stream::kStdin ? "stdin" : stream == Stream::kStdout ? "stdout" : "stderr";
}

/// The write end of a fifo whose reader is not there yet, when it is.
Result<UniqueFd> AwaitReader(const NamedFifo& fifo, const GivenUp& given_up, Deadline deadline) {
  // Watched only after our own openings, so that what is seen is the client's.
  GANTRY_TRY(UniqueFd write_end, os::OpenWriteEnd(fifo.name.get()));
  GANTRY_TRY(const os::FileUse use, os::FileUse::Watch(fifo.name.get()));
  if (os::HasReader(write_end.get())) {
    return write_end;
  }
  // It need not be there any more when we look: it was, and that is enough.
  while (true) {
    const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
    GANTRY_TRY(const uint32_t opened,
               os::Poll(use.fd(), EPOLLIN, std::min<std::chrono::nanoseconds>(left, kLookAgain)));
    if (opened != 0) {
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

Result<FifoEnds> OpenOutputFifo(const NamedFifo& fifo, const FifoOptions& options,
                                Deadline deadline) {
  FifoEnds ends;
  auto write_end = os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kWrite);
  if (!write_end && write_end.error().sys_errno == ENXIO) {
    write_end = AwaitReader(fifo, options.given_up, deadline);
  }
  GANTRY_TRY(ends.process, std::move(write_end));
  GANTRY_TRY(ends.keeper, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kRead));
  Widen(ends.keeper.get(), options);
  return ends;
}

Result<FifoEnds> OpenInputFifo(const NamedFifo& fifo, const FifoOptions& options) {
  FifoEnds ends;
  GANTRY_TRY(ends.process, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kRead));
  GANTRY_TRY(ends.keeper, os::OpenPipeEnd(fifo.name.get(), os::PipeEnd::kWrite));
  Widen(ends.keeper.get(), options);
  return ends;
}

void OutputKeeper::Begin() {
  // EPOLLPRI never comes from a pipe: the watch is for the hang-up alone, so
  // that data does not wake us.
  watch_ = relay_.loop().Watch(read_end_.get(), EPOLLPRI,
                               [self = shared_from_this()](uint32_t) { self->OnWritersGone(); });
}

void OutputKeeper::Release() {
  relay_.loop().Unwatch(std::exchange(watch_, {}));
  relay_.loop().Cancel(std::exchange(timer_, {}));
  use_.reset();
  write_end_.reset();
  {
    const std::lock_guard lock(mutex_);
    read_end_.reset();
  }
  on_written_ = nullptr;
  on_read_out_ = nullptr;
}

size_t OutputKeeper::UnreadBytes() const {
  const std::lock_guard lock(mutex_);
  return read_end_ ? os::BytesQueued(read_end_.get()).value_or(0) : 0;
}

bool OutputKeeper::Empty() const { return UnreadBytes() == 0; }

void OutputKeeper::OnWritersGone() {
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

void OutputKeeper::WatchUse() {
  if (auto use = os::FileUse::Watch(read_end_.get())) {
    use_ = std::move(*use);
    watch_ = relay_.loop().Watch(use_->fd(), EPOLLIN, [self = shared_from_this()](uint32_t) {
      // Unwatching frees this callback.
      const auto keep = self;  // NOLINT(performance-unnecessary-copy-initialization)
      keep->use_->Clear();
      keep->CheckEmpty();
    });
    return;
  }
  Poll();
}

void OutputKeeper::Poll() {
  timer_ = relay_.loop().After(kLookAgain, [self = shared_from_this()] {
    self->timer_ = {};
    self->CheckEmpty();
    if (self->read_end_) {
      self->Poll();
    }
  });
}

void OutputKeeper::CheckEmpty() {
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
