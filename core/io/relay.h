// SPDX-License-Identifier: Apache-2.0
//
// The engine that copies bytes where a stream cannot be handed over: terminals, pipes
// that heirs of a process may hold, streams out of VMs, log files. One thread with its own
// epoll serves all of them; it shares nothing with the engine's loop, so busy
// terminals do not slow down RPCs. What goes into files is done by a second one: writing
// to a file system may take long, or hang, and is to hold up other files only.
//
// Every step is one splice(2): bytes leave the source and arrive at the
// destination in the same system call, and at no time are they only in the
// memory of this process. So an engine that is killed between any two
// instructions neither loses nor doubles a byte; the next one goes on with the
// same descriptors out of the store. Checked on Linux 6.18 for a terminal's
// master into a fifo, a fifo into a master, sockets into and from fifos, a pipe
// into a file (one that is not opened O_APPEND). Where the kernel cannot splice
// a pair (a terminal before Linux 6.5), as many bytes are read as the
// destination has room for and written at once: then the window for a loss is
// the time between two system calls.
//
// Input for a terminal that is nobody's controlling terminal here is looked at before it
// moves: see typed_signals.h.
//
// Back pressure is the kernel's: nothing is read while the destination is full.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/account.h"
#include "core/async/loop.h"
#include "core/io/frames.h"
#include "core/io/typed_signals.h"

namespace gantry::io {

class FileUses;

/// Names one copy for the relay's lifetime. 0: none.
using CopyId = uint64_t;

/// What the destination is, which decides what happens at the end and when it
/// refuses.
enum class SinkKind {
  /// A fifo or pipe: closed at the end. Readers gone for good (EPIPE): the rest
  /// is read and dropped, so that the writer is not blocked.
  kPipe,
  /// A terminal's master, for input. Nothing is sent at the end.
  kTerminal,
  /// A socket: the write side is shut down at the end.
  kSocket,
  /// A socket whose stream has an end of its own: it is left as it is.
  kFramedSocket,
  /// A regular file, written at its end. What it refuses (no space) is dropped.
  kFile,
  /// Everything is dropped.
  kNone,
};

/// Why a copy ended.
enum class CopyEnd {
  /// The source's end was reached, or it was told to finish and was empty.
  kFinished,
  /// The destination is gone (input for a process that has ended).
  kSinkGone,
  /// The source has ended without the end that its feed should have seen.
  kCutOff,
  kError,
};

struct CopySpec {
  /// Both are taken, and made nonblocking.
  UniqueFd source;
  UniqueFd sink;
  SinkKind sink_kind = SinkKind::kPipe;
  /// Fills `source`, a pipe, whenever that is empty; null: it fills by itself.
  std::unique_ptr<Feed> feed{};
  /// From a fifo to a terminal that is nobody's controlling terminal here; null: nobody
  /// looks for signals.
  std::unique_ptr<TypedSignals> signals{};
  /// Only with `signals`: the character has been moved, what follows it has not. Must not
  /// block.
  std::move_only_function<void(int signal)> on_signal{};
  /// On whose behalf; null: on nobody's.
  async::AccountPtr account{};
  /// Runs on the IO thread after the copy's descriptors have been closed; not
  /// after `Stop`. `dropped_bytes`: what the destination refused.
  std::move_only_function<void(CopyEnd end, uint64_t dropped_bytes)> on_end;
};

/// Thread: any. Callbacks run on the IO thread, those of copies into files on theirs.
class Relay {
 public:
  Relay();
  /// Stops all copies without their callbacks. Nothing is lost: the
  /// descriptors live on in the store.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Begins to copy.
  CopyId Start(CopySpec spec);

  /// Ends the copy as soon as its source is empty, even where it has no end yet
  /// (a terminal that others keep open). Unknown or ended: nothing.
  void Finish(CopyId copy);

  /// Ends the copy when its source has been empty for `idle`, even where it has no end yet
  /// (a pipe that others keep open). Unknown or ended: nothing.
  void FinishWhenIdle(CopyId copy, async::Duration idle);

  /// What is in the source has been moved when this returns, as far as the destination takes
  /// it; one that is a pipe is widened for it. Blocks: for its IO thread.
  void Flush(CopyId copy);

  /// Ends the copy at once, whatever is left. When this returns its callback is
  /// not running and will not run, and its descriptors are closed (called by a
  /// callback: it may be the one running).
  void Stop(CopyId copy);

  /// Runs `function` on the IO thread.
  void Post(std::move_only_function<void()> function);
  /// The same, and it has run when this returns. Blocks: for its IO thread.
  void Do(std::move_only_function<void()> function);

  /// For watches and timers of the IO thread; only to be used there, but for posting.
  async::Loop& loop();
  FileUses& uses();

 private:
  class CopyThread;

  CopyThread& ThreadOf(CopyId copy);

  std::atomic<CopyId> next_id_{1};
  std::unique_ptr<CopyThread> streams_;
  std::unique_ptr<FileUses> uses_;
  /// Copies into files, from the first of them on.
  std::unique_ptr<CopyThread> files_;
  std::once_flag files_made_;
};

}  // namespace gantry::io
