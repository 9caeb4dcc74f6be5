// SPDX-License-Identifier: Apache-2.0
//
// What `ProcessIo` knows. Internal to core/io.
//
// Names in the store, and what is lost when one of them is dropped:
//
//   stdin-r   stdout-w  stderr-w    the process's ends, until it has them; for
//                                   a copied stream, until the copy has ended
//   stdin-w                         until CloseIO or the process's end
//   stdout-r  stderr-r              until the fifo has been read to its end
//   console                         the terminal's master
//   console-foreign                 its master, where it is nobody's controlling terminal
//                                   here. Engines of before store it as `console` too
//   console-replica                 its other side, until the process has it
//   stream-in stream-out stream-err streams that a backend attached, or the two ways of a
//                                   terminal that is elsewhere; read ends of the process's
//                                   own pipes
//   frames-in frames-out frames-err part-in part-out part-err
//                                   of those that are framed: where in a frame they are
//                                   (frames.h); dropped with them, not before
//   stdout-pipe stderr-pipe         write ends of its own pipes, until it has them
//   stdout-buf stderr-buf           read end of the pipe before a log file
//   stdin-feed                      of a client that streams: stdin's write end, until its end
//   conn-in conn-out conn-err       its connections, until they are closed
//   wire-in wire-out wire-err       and with them what has been said on these, and what is
//   sent-... received-...           on its way (stream_wire.h)
//
// Where the client streams, stdin-w says that CloseIO has not been called, and stdout-r and
// stderr-r stay until the client has heard of the end.
//
// From these alone `Recover` tells how far things had come. A descriptor is put
// there before anything depends on it and dropped after its effect is over.
// The process's ends of fifos are opened by the keeper itself, before the engine
// opens any.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "core/io/fifo.h"
#include "core/io/frames.h"
#include "core/io/process_io.h"
#include "core/io/stream_pump.h"
#include "core/io/typed_signals.h"

namespace gantry::io {

/// By `IndexOf`.
inline constexpr std::array kHeldNames = {"stdin-w", "stdout-r", "stderr-r"};
inline constexpr std::array kStreamNames = {"stream-in", "stream-out", "stream-err"};
inline constexpr std::array kFramesNames = {"frames-in", "frames-out", "frames-err"};
inline constexpr std::array kPartNames = {"part-in", "part-out", "part-err"};
inline constexpr std::array kPipeNames = {"", "stdout-pipe", "stderr-pipe"};
inline constexpr std::array kBufferNames = {"", "stdout-buf", "stderr-buf"};
inline constexpr std::array kConnectionNames = {"conn-in", "conn-out", "conn-err"};
inline constexpr std::array kWireNames = {"wire-in", "wire-out", "wire-err"};
inline constexpr std::array kSentNames = {"sent-in", "sent-out", "sent-err"};
inline constexpr std::array kReceivedNames = {"received-in", "received-out", "received-err"};
inline constexpr const char* kFeedName = "stdin-feed";
inline constexpr const char* kConsoleName = "console";
inline constexpr const char* kForeignName = "console-foreign";
inline constexpr const char* kReplicaName = "console-replica";

/// Adds a copy of `fd`, where there is one, to what will be stored.
Status AddCopy(std::vector<StoredFd>& fds, const char* name, const UniqueFd& fd);

/// One of the three streams.
struct StreamState {
  /// The process's end, until it is taken, copied from or to, or let go.
  UniqueFd process;
  /// stdin's write end.
  UniqueFd held_input;
  std::shared_ptr<OutputHold> held_output;
  bool attached = false;
  /// Where the attached one is framed.
  FrameFiles frames;
  /// Of a pipe of the process's own: its write end, until that is taken.
  UniqueFd pipe;
  /// What is copied from, where that is a pipe: for asking what is in it.
  UniqueFd copied_pipe;
  /// The process or an heir of it may still write into the fifo itself.
  bool writers = false;
  /// Bytes are on their way through the relay.
  bool copying = false;
  CopyId copy = 0;
  /// The second half of a copy into a file.
  CopyId file_copy = 0;
  /// Of a client that streams: one of the two.
  std::shared_ptr<OutputStream> output;
  std::shared_ptr<InputStream> input;
  /// Its connection, where that waits for the process to be started.
  std::optional<StreamConnection> arrived;
  /// The number of that in the store; 0: none is.
  uint64_t connection = 0;
  /// Connections on their way into the store and to the pump.
  int arriving = 0;
  /// CloseIO was called before the pump had them.
  bool closing = false;
};

/// A copy of a stream's that has ended.
struct EndedCopy {
  Stream stream = Stream::kStdout;
  CopyEnd end = CopyEnd::kFinished;
  uint64_t dropped_bytes = 0;
};

/// A client is there, or about to be, that has not heard of the output's end.
inline bool AwaitsClient(const StreamState& one) {
  return one.output && (!one.output->settled() || one.arriving > 0 || one.arrived);
}

/// Thread: any. Shared with the relay's callbacks, which hold it weakly.
class ProcessIo::State : public std::enable_shared_from_this<ProcessIo::State> {
 public:
  State(Relay& relay, StdioHost& host, StdioUri uri, StdioOptions options, bool terminal);

  Status AdoptOpened(OpenedStdio opened);
  Status AdoptStored(std::vector<StoredFd> stored);

  bool terminal() const { return terminal_; }

  /// Clients that stream may connect from now on. Once, after one of the two above.
  void AwaitClients();

  Result<Stdio> Take();
  void Started();
  Result<UniqueFd> OpenConsole(ConsoleKind kind);
  Status AttachConsole(UniqueFd master, ConsoleKind kind);
  Status AttachStream(Stream stream, UniqueFd fd, StreamFraming framing);
  Status Resize(ConsoleSize size);
  void CloseStdin();
  void Ended();
  void WhenDrained(std::move_only_function<void()> done);
  size_t UnreadBytes();
  void Close();
  /// Stops without dropping anything.
  void Abandon();

 private:
  using Callbacks = std::vector<std::move_only_function<void()>>;

  enum class AttachAs { kConsole, kStream, kFrames };

  /// A pipe before a log file: the write end is the first copy's sink. Where a pipe is
  /// copied from, only the file.
  struct FileBuffer {
    UniqueFd read_end;
    UniqueFd write_end;
    UniqueFd file;
  };

  StreamState& StateOf(Stream stream) GANTRY_REQUIRES(mutex_) { return streams_[IndexOf(stream)]; }

  Status Put(std::vector<StoredFd> fds);
  void DropLocked(std::vector<std::string> names) GANTRY_REQUIRES(mutex_);
  void DropUnusedLocked(std::vector<std::string> left) GANTRY_REQUIRES(mutex_);
  void KeepOutputLocked(Stream stream, UniqueFd read_end) GANTRY_REQUIRES(mutex_);
  Result<FileBuffer> MakeFileBuffer(UniqueFd stored, bool from_pipe);
  Status MakeOwnPipes();
  std::vector<Stream> ClaimOwnPipesLocked() GANTRY_REQUIRES(mutex_);
  Status ClaimAttach(Stream stream, AttachAs as);
  /// `replica`: to be kept until the process has its own; none: it has.
  Status AttachConsole(UniqueFd master, ConsoleKind kind, UniqueFd replica);
  Status AttachStored(Stream stream, UniqueFd fd, const char* name,
                      std::vector<StoredFd> before = {});
  Status BeginLocked(Stream stream, UniqueFd fd, UniqueFd buffer) GANTRY_REQUIRES(mutex_);
  Status BeginInputOnceStartedLocked(UniqueFd to) GANTRY_REQUIRES(mutex_);
  Status BeginInputLocked(UniqueFd to) GANTRY_REQUIRES(mutex_);
  /// The copy's source is the stream's, or what comes of its frames.
  Status SetSourceLocked(Stream stream, UniqueFd from, CopySpec& spec) GANTRY_REQUIRES(mutex_);
  Status BeginOutputLocked(Stream stream, UniqueFd from, FileBuffer buffer) GANTRY_REQUIRES(mutex_);
  void OnTyped(int signal);
  void OnInputEnd(CopyEnd end);
  void LogCutOffLocked(Stream stream, CopyEnd end) GANTRY_REQUIRES(mutex_);
  void OnOutputEnd(Stream stream, CopyEnd end, uint64_t dropped_bytes);
  /// Whether the start took effect is known: it did.
  void Decide();
  bool DrainedLocked() const GANTRY_REQUIRES(mutex_);
  Callbacks TakeCallbacksLocked() GANTRY_REQUIRES(mutex_);
  void StopInputLocked() GANTRY_REQUIRES(mutex_);

  // Of clients that stream (stdio_streaming.cc).
  bool Streams(Stream stream) const;
  /// `end`: the pump's; none: the stream has ended.
  void BeginPumpLocked(Stream stream, UniqueFd end) GANTRY_REQUIRES(mutex_);
  Status TakeUpClientLocked(Stream stream, StreamFiles files) GANTRY_REQUIRES(mutex_);
  void OnArrived(Stream stream, StreamConnection connection);
  void StoreClientLocked(Stream stream, StreamConnection connection) GANTRY_REQUIRES(mutex_);
  void OnStored(Stream stream, StreamFiles files, uint64_t number, const Status& stored);
  void Attach(Stream stream, std::unique_ptr<StreamWire> wire);
  void TakeClientsLocked() GANTRY_REQUIRES(mutex_);
  void EndInputWithClientLocked() GANTRY_REQUIRES(mutex_);
  void OnPumpEnded(Stream stream);
  void OnClientLeft(Stream stream, uint64_t number);
  void ReleasePumpsLocked() GANTRY_REQUIRES(mutex_);
  void AbandonPumps();
  void ReleaseEndsLocked() GANTRY_REQUIRES(mutex_);
  std::vector<CopyId> TakeCopiesLocked() GANTRY_REQUIRES(mutex_);

  Relay& relay_;
  StdioHost& host_;
  const StdioUri uri_;
  const StdioOptions options_;
  const bool terminal_;

  /// Guards all below. Held while the relay is told to start or finish, never
  /// while it is waited for.
  Mutex mutex_;
  std::array<StreamState, 3> streams_ GANTRY_GUARDED_BY(mutex_);
  std::set<std::string> stored_ GANTRY_GUARDED_BY(mutex_);
  UniqueFd console_ GANTRY_GUARDED_BY(mutex_);
  /// Its other side, until the process has it.
  UniqueFd replica_ GANTRY_GUARDED_BY(mutex_);
  /// Where input goes that begins with `Started`: the console, or what was attached.
  UniqueFd waiting_input_ GANTRY_GUARDED_BY(mutex_);
  bool console_attached_ GANTRY_GUARDED_BY(mutex_) = false;
  bool console_foreign_ GANTRY_GUARDED_BY(mutex_) = false;
  /// Of a foreign console, until its input begins.
  std::unique_ptr<TypedSignals> typed_ GANTRY_GUARDED_BY(mutex_);
  ConsoleSize size_ GANTRY_GUARDED_BY(mutex_);
  bool taken_ GANTRY_GUARDED_BY(mutex_) = false;
  bool started_ GANTRY_GUARDED_BY(mutex_) = false;
  bool ended_ GANTRY_GUARDED_BY(mutex_) = false;
  /// See `StdioOptions::undecided`; and what has ended meanwhile.
  bool undecided_ GANTRY_GUARDED_BY(mutex_);
  std::vector<EndedCopy> ended_copies_ GANTRY_GUARDED_BY(mutex_);
  /// By `Close` or `Abandon`: nothing is dropped for a stream's own end any more.
  bool closed_ GANTRY_GUARDED_BY(mutex_) = false;
  /// Those clients that had connected before have arrived.
  bool looked_for_clients_ GANTRY_GUARDED_BY(mutex_) = false;
  Callbacks on_drained_ GANTRY_GUARDED_BY(mutex_);
  std::unique_ptr<BinaryLogger> logger_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::io
