// SPDX-License-Identifier: Apache-2.0
//
// The half of `ProcessIo` that copies: terminals, attached streams, log files.
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/terminal.h>

#include "core/io/stdio_state.h"
#include "core/os/fifo.h"
#include "core/os/splice.h"

namespace gantry::io {

Result<ProcessIo::State::FileBuffer> ProcessIo::State::MakeFileBuffer(UniqueFd stored,
                                                                      bool from_pipe) {
  FileBuffer buffer;
  GANTRY_TRY(buffer.file, OpenLogFile(uri_.path));
  if (from_pipe && !stored) {
    return buffer;
  }
  if (stored) {
    buffer.read_end = std::move(stored);
    GANTRY_TRY(buffer.write_end, os::OpenPipeEnd(buffer.read_end.get(), os::PipeEnd::kWrite));
    return buffer;
  }
  GANTRY_TRY(auto ends, MakePipe());
  buffer.read_end = std::move(ends.first);
  buffer.write_end = std::move(ends.second);
  IgnoreError(os::SetPipeSize(buffer.write_end.get(), options_.pipe_bytes), "only slower");
  return buffer;
}

std::vector<Stream> ProcessIo::State::ClaimOwnPipesLocked() {
  std::vector<Stream> claimed;
  const bool to_file = uri_.kind == StdioKind::kFile;
  const bool own = options_.own_pipes && IsPassedOn(uri_);
  if (terminal_ || closed_ || !(to_file || own)) {
    return claimed;
  }
  for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
    // One pipe for a log file, so that what the process says stays in its order.
    const bool wanted = to_file ? stream == Stream::kStdout : bool(StateOf(stream).process);
    // Where an engine before this one made it, it is attached.
    if (wanted && !std::exchange(StateOf(stream).attached, true)) {
      claimed.push_back(stream);
    }
  }
  return claimed;
}

/// Pipes between the process and its fifos, or its log file, which is nothing to be given to
/// what may not be trusted: it could be truncated, or made a set-user-id program. Both ends are in
/// the store before the process has one: an engine that is killed in between ends no stream.
Status ProcessIo::State::MakeOwnPipes() {
  std::vector<Stream> claimed;
  {
    const MutexLock lock(mutex_);
    claimed = ClaimOwnPipesLocked();
  }
  std::array<std::pair<UniqueFd, UniqueFd>, 3> pipes;
  std::vector<StoredFd> fds;
  for (const Stream stream : claimed) {
    const size_t i = IndexOf(stream);
    GANTRY_TRY(pipes[i], MakePipe());
    if (options_.uid || options_.gid) {
      GANTRY_CHECK_OK(os::ChangeOwner(pipes[i].second.get(), options_.uid, options_.gid));
    }
    GANTRY_CHECK_OK(AddCopy(fds, kStreamNames[i], pipes[i].first));
    GANTRY_CHECK_OK(AddCopy(fds, kPipeNames[i], pipes[i].second));
  }
  GANTRY_CHECK_OK(Put(std::move(fds)));
  const MutexLock lock(mutex_);
  for (const Stream stream : claimed) {
    const size_t i = IndexOf(stream);
    StateOf(stream).pipe = std::move(pipes[i].second);
    if (auto status = BeginLocked(stream, std::move(pipes[i].first), UniqueFd()); !status) {
      // Where Close came first it did not see these.
      host_.Drop({kStreamNames[i], kPipeNames[i]});
      return status;
    }
  }
  return {};
}

/// Of a terminal that is elsewhere the two ways come in frames; it has no stderr.
Status ProcessIo::State::ClaimAttach(Stream stream, AttachAs as) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return Fail(Code::kFailedPrecondition, "attach a stream: the process was deleted");
  }
  const bool console = as == AttachAs::kConsole;
  const bool is_way = as == AttachAs::kFrames && stream != Stream::kStderr;
  if (terminal_ ? !console && !is_way : console) {
    return Fail(Code::kFailedPrecondition, "attach a {}: the process has {} terminal",
                console ? "console" : "stream", terminal_ ? "a" : "no");
  }
  const bool taken = StateOf(stream).attached || console_attached_ ||
                     (console && StateOf(Stream::kStdin).attached);
  if (taken) {
    return Fail(Code::kFailedPrecondition, "attach a {}: there is one already",
                console ? "console" : "stream");
  }
  StateOf(stream).attached = true;
  return {};
}

Result<UniqueFd> ProcessIo::State::OpenConsole(ConsoleKind kind) {
  {
    const MutexLock lock(mutex_);
    if (replica_) {
      return replica_.Duplicate();
    }
  }
  GANTRY_TRY(Terminal made, Terminal::Open());
  GANTRY_TRY(UniqueFd kept, made.replica.Duplicate());
  GANTRY_CHECK_OK(AttachConsole(std::move(made.master), kind, std::move(kept)));
  return std::move(made.replica);
}

Status ProcessIo::State::AttachConsole(UniqueFd master, ConsoleKind kind) {
  return AttachConsole(std::move(master), kind, UniqueFd());
}

Status ProcessIo::State::AttachConsole(UniqueFd master, ConsoleKind kind, UniqueFd replica) {
  GANTRY_CHECK_OK(ClaimAttach(Stream::kStdout, AttachAs::kConsole));
  const bool foreign = kind == ConsoleKind::kForeign;
  std::unique_ptr<TypedSignals> typed;
  if (foreign) {
    GANTRY_TRY(typed, TypedSignals::Make());
  }
  std::vector<StoredFd> before;
  GANTRY_CHECK_OK(AddCopy(before, kReplicaName, replica));
  GANTRY_TRY(UniqueFd to, master.Duplicate());
  GANTRY_TRY(UniqueFd kept, master.Duplicate());
  {
    const MutexLock lock(mutex_);
    StateOf(Stream::kStdin).attached = true;
    console_attached_ = true;
    console_ = std::move(kept);
    console_foreign_ = foreign;
    replica_ = std::move(replica);
    typed_ = std::move(typed);
    if (size_.width != 0 || size_.height != 0) {
      IgnoreError(os::SetWindowSize(console_.get(), size_.width, size_.height), "it may be closed");
    }
  }
  GANTRY_CHECK_OK(AttachStored(Stream::kStdout, std::move(master),
                               foreign ? kForeignName : kConsoleName, std::move(before)));
  const MutexLock lock(mutex_);
  if (ended_) {
    relay_.Finish(StateOf(Stream::kStdout).copy);
    return {};
  }
  return BeginInputOnceStartedLocked(std::move(to));
}

Status ProcessIo::State::AttachStream(Stream stream, UniqueFd fd, StreamFraming framing) {
  const size_t i = IndexOf(stream);
  const bool framed = framing == StreamFraming::kFrames;
  if (framed && !os::IsStreamSocket(fd.get())) {
    return Fail(Code::kInvalidArgument, "attach a stream: frames come on a stream socket alone");
  }
  GANTRY_CHECK_OK(ClaimAttach(stream, framed ? AttachAs::kFrames : AttachAs::kStream));
  std::vector<StoredFd> before;
  if (framed) {
    GANTRY_TRY(FrameFiles frames, FrameFiles::Make());
    GANTRY_CHECK_OK(AddCopy(before, kFramesNames[i], frames.state));
    GANTRY_CHECK_OK(AddCopy(before, kPartNames[i], frames.part));
    const MutexLock lock(mutex_);
    StateOf(stream).frames = std::move(frames);
  }
  return AttachStored(stream, std::move(fd), kStreamNames[i], std::move(before));
}

Status ProcessIo::State::AttachStored(Stream stream, UniqueFd fd, const char* name,
                                      std::vector<StoredFd> before) {
  std::vector<StoredFd> fds = std::move(before);
  GANTRY_CHECK_OK(AddCopy(fds, name, fd));
  UniqueFd buffer;
  if (uri_.kind == StdioKind::kFile && stream != Stream::kStdin && !os::IsFifo(fd.get())) {
    GANTRY_TRY(auto ends, MakePipe());
    IgnoreError(os::SetPipeSize(ends.first.get(), options_.pipe_bytes), "only slower");
    GANTRY_CHECK_OK(AddCopy(fds, kBufferNames[IndexOf(stream)], ends.first));
    buffer = std::move(ends.first);
  }
  GANTRY_CHECK_OK(Put(std::move(fds)));
  const MutexLock lock(mutex_);
  auto status = BeginLocked(stream, std::move(fd), std::move(buffer));
  if (!status) {
    // Where Close came first it did not see these.
    const size_t i = IndexOf(stream);
    host_.Drop({name, kBufferNames[i], kReplicaName, kFramesNames[i], kPartNames[i]});
  }
  return status;
}

Status ProcessIo::State::BeginLocked(Stream stream, UniqueFd fd, UniqueFd buffer) {
  if (closed_) {
    return Fail(Code::kFailedPrecondition, "attach a stream: the process was deleted");
  }
  StateOf(stream).attached = true;
  if (stream == Stream::kStdin) {
    return BeginInputOnceStartedLocked(std::move(fd));
  }
  FileBuffer file;
  if (uri_.kind == StdioKind::kFile) {
    GANTRY_TRY(file, MakeFileBuffer(std::move(buffer), os::IsFifo(fd.get())));
  }
  return BeginOutputLocked(stream, std::move(fd), std::move(file));
}

/// What a client types before the process is on record stays in its fifo: until then the process
/// may be undone and made again, and what it was given, at a terminal or through a stream of its
/// own, be lost with it.
Status ProcessIo::State::BeginInputOnceStartedLocked(UniqueFd to) {
  if (started_) {
    return BeginInputLocked(std::move(to));
  }
  waiting_input_ = std::move(to);
  return {};
}

Status ProcessIo::State::SetSourceLocked(Stream stream, UniqueFd from, CopySpec& spec) {
  const FrameFiles& frames = StateOf(stream).frames;
  if (!frames) {
    spec.source = std::move(from);
    return {};
  }
  GANTRY_TRY(spec.source, frames.part.Duplicate());
  GANTRY_TRY(FrameFiles files, frames.Duplicate());
  GANTRY_TRY(spec.feed, stream == Stream::kStdin ? WriteFrames(std::move(from), std::move(files))
                                                 : ReadFrames(std::move(from), std::move(files)));
  return {};
}

Status ProcessIo::State::BeginInputLocked(UniqueFd to) {
  StreamState& in = StateOf(Stream::kStdin);
  if (!in.process && !in.frames) {
    // No stdin: what reads from a stream sees its end, a terminal waits.
    if (!terminal_) {
      IgnoreError(os::ShutDownWriting(to.get()), "a pipe ends by being closed");
    }
    DropLocked({"stream-in"});
    return {};
  }
  CopySpec spec;
  spec.account = options_.account;
  // Without a stdin its frames are nothing but the end.
  GANTRY_CHECK_OK(SetSourceLocked(Stream::kStdin, std::move(in.process), spec));
  spec.sink = std::move(to);
  spec.sink_kind = in.frames   ? SinkKind::kFramedSocket
                   : terminal_ ? SinkKind::kTerminal
                               : SinkKind::kSocket;
  if (typed_) {
    spec.signals = std::move(typed_);
    spec.on_signal = [self = weak_from_this()](int signal) {
      if (const auto state = self.lock()) {
        state->OnTyped(signal);
      }
    };
  }
  spec.on_end = [self = weak_from_this()](CopyEnd end, uint64_t) {
    if (const auto state = self.lock()) {
      state->OnInputEnd(end);
    }
  };
  in.copy = relay_.Start(std::move(spec));
  return {};
}

void ProcessIo::State::OnTyped(int signal) {
  const MutexLock lock(mutex_);
  if (!closed_) {
    host_.ConsoleSignal(static_cast<uint32_t>(signal));
  }
}

void ProcessIo::State::OnInputEnd(CopyEnd end) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return;
  }
  StreamState& in = StateOf(Stream::kStdin);
  in.copy = 0;
  if (in.frames && end == CopyEnd::kFinished) {
    // Who closes a connection of frames takes back what is under way: `Ended` does.
    in.held_input.reset();
    DropLocked({"stdin-r", "stdin-w"});
    return;
  }
  StopInputLocked();
}

void ProcessIo::State::LogCutOffLocked(Stream stream, CopyEnd end) {
  if (end == CopyEnd::kCutOff) {
    host_.Log(LogLevel::kWarning,
              Format("{} ended without its last frame: the sandbox may have had more to say",
                     kProcessNames[IndexOf(stream)]));
  }
}

Status ProcessIo::State::BeginOutputLocked(Stream stream, UniqueFd from, FileBuffer buffer) {
  StreamState& out = StateOf(stream);
  if (os::IsFifo(from.get())) {
    GANTRY_TRY(out.copied_pipe, from.Duplicate());
  }
  out.copying = true;
  auto on_end = [self = weak_from_this(), stream](CopyEnd end, uint64_t dropped_bytes) {
    if (const auto state = self.lock()) {
      state->OnOutputEnd(stream, end, dropped_bytes);
    }
  };
  CopySpec spec;
  spec.account = options_.account;
  GANTRY_CHECK_OK(SetSourceLocked(stream, std::move(from), spec));
  if (!buffer.file) {
    spec.sink = std::move(out.process);
    spec.sink_kind = spec.sink ? SinkKind::kPipe : SinkKind::kNone;
    spec.on_end = std::move(on_end);
    out.copy = relay_.Start(std::move(spec));
    return {};
  }
  if (!buffer.read_end) {
    spec.sink = std::move(buffer.file);
    spec.sink_kind = SinkKind::kFile;
    spec.on_end = std::move(on_end);
    out.copy = relay_.Start(std::move(spec));
    return {};
  }
  // The first copy's end closes the pipe, which ends the second.
  spec.sink = std::move(buffer.write_end);
  spec.on_end = [self = weak_from_this(), stream](CopyEnd end, uint64_t) {
    if (const auto state = self.lock()) {
      const MutexLock lock(state->mutex_);
      state->LogCutOffLocked(stream, end);
    }
  };
  out.copy = relay_.Start(std::move(spec));
  CopySpec to_file;
  to_file.account = options_.account;
  to_file.source = std::move(buffer.read_end);
  to_file.sink = std::move(buffer.file);
  to_file.sink_kind = SinkKind::kFile;
  to_file.on_end = std::move(on_end);
  out.file_copy = relay_.Start(std::move(to_file));
  return {};
}

void ProcessIo::State::OnOutputEnd(Stream stream, CopyEnd end, uint64_t dropped_bytes) {
  Callbacks callbacks;
  {
    const MutexLock lock(mutex_);
    if (closed_) {
      return;
    }
    if (undecided_) {
      ended_copies_.push_back({stream, end, dropped_bytes});
      return;
    }
    StreamState& out = StateOf(stream);
    const bool expected = uri_.kind == StdioKind::kNone || PathOf(uri_, stream).empty();
    if (dropped_bytes > 0 && !(expected && uri_.path.empty())) {
      host_.Log(LogLevel::kWarning,
                Format("{} bytes of output were dropped: nobody takes them", dropped_bytes));
    }
    LogCutOffLocked(stream, end);
    out.copying = false;
    out.copied_pipe.reset();
    out.frames = {};
    out.copy = 0;
    out.file_copy = 0;
    const size_t i = IndexOf(stream);
    std::vector<std::string> names = {kProcessNames[i], kPipeNames[i],   kStreamNames[i],
                                      kBufferNames[i],  kFramesNames[i], kPartNames[i]};
    if (terminal_) {
      names.emplace_back(kConsoleName);
      names.emplace_back(kForeignName);
      names.emplace_back(kReplicaName);
      replica_.reset();
      console_.reset();
      StopInputLocked();
    }
    DropLocked(std::move(names));
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

}  // namespace gantry::io
