// SPDX-License-Identifier: Apache-2.0
//
// The standard streams of one process (a container's init or an exec) from
// Create to Delete: what is handed to the process, what is copied for it, what
// is held open on its behalf, and when each of these is let go.
//
// The life of a process's streams:
//
//   Open          opens what containerd named            Create, Exec's Start
//   Take          the process's own ends                 `TakeStdio`
//   OpenConsole / AttachConsole / AttachStream           the backend's call
//   Started       the process has its ends: ours go      after Process::Start
//   Resize, CloseStdin                                   the RPCs
//   Ended         the process is dead                    its exit
//   UnreadBytes   what its client has still to read      before the exit is told
//   WhenDrained   all it wrote has been passed on        Delete waits for it
//   Close         lets everything go                     Delete
//
// After a restart of the engine `Recover` takes the place of `Open`; the calls
// that had been made before need not be repeated.
//
// How fifos are held, and why, is in fifo.h.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

#include "core/io/host.h"
#include "core/io/open_stdio.h"
#include "core/io/relay.h"
#include "core/io/uri.h"

namespace gantry::io {

/// Thread: any; calls for one object may overlap. Dropping the object without
/// `Close` leaves everything as it is for the next engine.
class ProcessIo {
 public:
  /// Opens the streams. On an error nothing is held, stored or running.
  /// Errors: kInvalidArgument for a URI or a path that cannot be; kNotFound,
  /// kPermissionDenied from the file system; kDeadlineExceeded where nobody
  /// opened the other end, or the logger did not get ready, within
  /// `open_limit`; kUnavailable where the logger ended.
  /// Owner: `relay` and `host` must outlive the object.
  /// Thread: workers. Blocks: up to `open_limit`; not at all where containerd
  /// has opened its ends already, as it does.
  static Result<std::unique_ptr<ProcessIo>> Open(Relay& relay, StdioHost& host,
                                                 const StdioPaths& paths, StdioOptions options);

  /// The streams as an earlier engine left them. `stored`: all that is in the
  /// store for this process; what is missing was let go. Copying goes on where
  /// it stopped, without a byte lost or doubled. Thread: workers; the loop's too, where
  /// `RecoverBlocks` says no. Blocks: for a log file's file system, or a logger's end.
  static Result<std::unique_ptr<ProcessIo>> Recover(Relay& relay, StdioHost& host,
                                                    const StdioPaths& paths, StdioOptions options,
                                                    std::vector<StoredFd> stored);
  static bool RecoverBlocks(const StdioPaths& paths);
  /// The client may come back when nothing of the streams is left, to be told that they have ended.
  static bool Streams(const StdioPaths& paths);

  ProcessIo(const ProcessIo&) = delete;
  ProcessIo& operator=(const ProcessIo&) = delete;
  ~ProcessIo();

  bool terminal() const;

  /// The process's ends; with `own_pipes`, of pipes that are made now.
  /// Errors: then those of the store. Again: kFailedPrecondition.
  /// Thread: workers. Blocks: with `own_pipes` for the store.
  Result<Stdio> Take();

  /// The backend's call that runs the process has returned: it has its ends.
  /// Closes ours and drops them from the store, so that readers see the end
  /// when the process closes its own. Where it is left out, only `Close` lets
  /// them go. Again: harmless. Blocks: never.
  void Started();

  /// Makes the terminal and attaches it; gives its other side, of which a copy is stored until
  /// `Started` or `Ended`: the master would see a hang-up while nobody has it.
  /// Again, until then, and after a restart too: that of the same terminal.
  /// Errors: as `AttachConsole`; the kernel's. Thread: workers. Blocks: for the store.
  Result<UniqueFd> OpenConsole(ConsoleKind kind);

  /// Copies between the terminal and the streams from now on; input from `Started` on. May
  /// come after
  /// `Ended` (a short-lived process) as long as not both `Ended` and `Started`
  /// have been called.
  /// Of a foreign console the host is told the signals that are typed and each `Resize`.
  /// Errors: kFailedPrecondition without `terminal` and the second time.
  /// Thread: workers. Blocks: for the store.
  Status AttachConsole(UniqueFd master, ConsoleKind kind = ConsoleKind::kControlling);

  /// Copies between `fd` and one of the streams from now on: until its end (or,
  /// for stdin, until the client has closed it, which half-closes `fd`). Comes
  /// before `Started`. An output counts as ended, too, when the process has
  /// ended and nothing has come for `heirs_limit`.
  /// With frames stdin's connection stays in the store until the process has ended. With
  /// `terminal` and no console stdin and stdout are the two ways of a terminal that is elsewhere:
  /// with frames, and input ends with output.
  /// Errors: kFailedPrecondition the second time, or with a console or `terminal` otherwise;
  /// kInvalidArgument: frames, and no stream socket.
  /// Thread: workers. Blocks: for the store.
  Status AttachStream(Stream stream, UniqueFd fd, StreamFraming framing = StreamFraming::kNone);

  /// Without a terminal, and before there is one: nothing to do (a size that
  /// comes before the console is kept for it).
  Status Resize(ConsoleSize size);

  /// The client has closed stdin: the process sees its end as soon as the
  /// client's own end is closed too. Again: harmless. Blocks: never.
  void CloseStdin();

  /// The process has ended. What its terminal still holds is copied, then the
  /// terminal is let go even where others keep it open. May come before
  /// `Started`. Again: harmless. Blocks: never.
  void Ended();

  /// Calls `done` when `Ended` was called, all that is copied has been passed on
  /// to a fifo, pipe or file, and no heir of the process holds a fifo of its
  /// output any more: containerd's client stops reading an exec's output when
  /// Delete has answered.
  /// `done` runs on the caller's or on the IO thread.
  void WhenDrained(std::move_only_function<void()> done);

  /// What the process has written and its client not read yet; copies under way
  /// count one each. 0 where the output goes to no fifo.
  /// Blocks: never.
  size_t UnreadBytes() const;

  /// Lets all go: copying stops, names are dropped, a logger is given a second
  /// to read the rest, then told to end and killed after `logger_stop`.
  /// `WhenDrained` callbacks that were not called are called. Again: harmless.
  /// Thread: workers. Blocks: as long as a logger takes.
  void Close();

 private:
  class State;

  explicit ProcessIo(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace gantry::io
