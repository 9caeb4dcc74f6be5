// SPDX-License-Identifier: Apache-2.0
//
// The fifos that containerd's client makes, and how gantry holds on to them.
//
// A container's init without a terminal gets the fifo itself as its stdout: no byte
// passes through gantry. (What may leave heirs behind that hold its output for ever gets
// pipes of its own instead, and the relay has the fifo: stdio_copy.cc. For that one all
// below holds as well.) Four things must hold nevertheless.
//
// 1. Opening must not go wrong whatever the client's timing. The client opens
//    its ends in the background, with an open(2) that blocks until the other
//    side is there (containerd/fifo clears O_NONBLOCK for it). A writer that
//    came and went before that would leave the reader blocked for ever. So Open
//    waits until the reader is there. It nearly always is: then opening for
//    writing with O_NONBLOCK succeeds at once, for a reader counts from the
//    moment at which it blocks. Where it is not (ENXIO), gantry holds the write
//    end, which needs O_RDWR once, and waits for the kernel to say that someone
//    has opened the file (inotify). An engine that is killed in between must not
//    end the stream either: before it opens anything, the keeper process opens the
//    process's ends (`StdioHost::Hold`), of a fifo that it is only named.
//
// 2. A reader that is restarted must neither kill the writer (SIGPIPE) nor lose
//    what is in the pipe. So a *read* end, the keeper, is held, nonblocking and
//    never read. It lives in the descriptor store, too, so the same holds while
//    the engine is away.
//
// 3. The reader must see the end exactly when the process and all its heirs (a
//    daemon that inherited stdout) have closed theirs; containerd's client
//    waits for that before it calls Delete. Since gantry holds no write end once
//    the process runs, the kernel does that by itself, without gantry.
//
// 4. No tail may be cut. When the last writer is gone the keeper's read end
//    hangs up (EPOLLHUP). Is the pipe empty then, all has been read and the
//    keeper is closed. Otherwise a reader is slow, or away. One that is away
//    would block in open(2), there being no writer; so a write end is opened
//    again until the pipe is empty, of which inotify tells, too. With it the
//    reader comes in, reads the rest, and sees the end. At the latest Delete
//    closes all.
//
// stdin is the mirror image: the process has the read end; gantry holds a write
// end, so that the process sees the end of its input only when the client has
// closed its own *and* said so (CloseIO), and a client may detach and return.
//
// The process's end always has an open file description of its own: what it
// does to its flags (O_NONBLOCK) concerns nobody else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "core/io/file_uses.h"
#include "core/io/relay.h"
#include "core/os/fifo.h"

namespace gantry::io {

/// Set by whoever does not want it any more. Null: nobody does that.
using GivenUp = std::shared_ptr<const std::atomic<bool>>;

struct FifoOptions {
  size_t pipe_bytes = size_t{256} << 10;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  GivenUp given_up;
};

struct FifoEnds {
  /// For the process: writes for an output, reads for stdin. Nonblocking.
  UniqueFd process;
  UniqueFd hold;
};

using Deadline = std::chrono::steady_clock::time_point;

/// A fifo that was found but not opened.
struct NamedFifo {
  Stream stream = Stream::kStdin;
  std::string path;
  /// Only names it (O_PATH).
  UniqueFd name;
};

/// Errors: kInvalidArgument: no fifo; kNotFound, kPermissionDenied. Blocks: never.
Result<NamedFifo> FindFifo(Stream stream, std::string path, const FifoOptions& options);

/// Opens the fifo of stdout or stderr.
/// Errors: kDeadlineExceeded: no reader came; kCanceled: it was given up.
/// Thread: workers. Blocks: until a reader is there, up to `deadline`.
Result<FifoEnds> OpenOutputFifo(Relay& relay, const NamedFifo& fifo, const FifoOptions& options,
                                Deadline deadline);

/// Opens the fifo of stdin. Blocks: never.
Result<FifoEnds> OpenInputFifo(const NamedFifo& fifo, const FifoOptions& options);

/// Holds the keeper of an output fifo until it has been read to its end.
/// Thread: the relay's, but for construction and destruction.
class OutputHold : public std::enable_shared_from_this<OutputHold> {
 public:
  /// `on_written` runs once, when the process and its heirs have closed their
  /// ends; `on_read_out` once, after the keeper's descriptor was closed. Neither
  /// after `Release`.
  OutputHold(Relay& relay, UniqueFd read_end, std::function<void()> on_written,
             std::function<void()> on_read_out)
      : relay_(relay),
        read_end_(std::move(read_end)),
        on_written_(std::move(on_written)),
        on_read_out_(std::move(on_read_out)) {}

  /// Begins to watch.
  void Begin();
  /// Closes all at once. Again: harmless.
  void Release();
  /// What was written and not read yet. Thread: any.
  size_t UnreadBytes() const;

 private:
  void OnWritersGone();
  void WatchUse();
  void CheckEmpty();
  void Poll();
  bool Empty() const;

  Relay& relay_;
  /// Guards against closing `read_end_`, which only the relay's thread changes.
  mutable Mutex mutex_;
  UniqueFd read_end_;
  /// Held while there is a rest to read and no writer.
  UniqueFd write_end_;
  UseId use_ = 0;
  async::WatchId watch_;
  async::TimerId timer_;
  std::function<void()> on_written_;
  std::function<void()> on_read_out_;
};

}  // namespace gantry::io
