// SPDX-License-Identifier: Apache-2.0
//
// What a process's streams hold and have put into the store. A name is entered in `stored_`
// before its descriptor is sent and taken out when it is dropped, so each is dropped once. With a
// new engine the descriptors come back by their names, and each name says what it was: the
// process's end, an end that is held, a pipe of its own, the console, or a copy's buffer. The
// process's ends are closed only once it has been started, for a start may still be repeated.
#include "core/io/stdio_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"

namespace gantry::io {

namespace {

/// Takes a descriptor out of what was stored; none where the name is not there.
UniqueFd Extract(std::vector<StoredFd>& stored, std::string_view name) {
  const auto found = std::ranges::find(stored, name, &StoredFd::name);
  if (found == stored.end()) {
    return UniqueFd();
  }
  UniqueFd fd = std::move(found->fd);
  stored.erase(found);
  return fd;
}

}  // namespace

Status AddCopy(std::vector<StoredFd>& fds, const char* name, const UniqueFd& fd) {
  if (fd) {
    GANTRY_TRY(UniqueFd copy, fd.Duplicate());
    fds.push_back({name, std::move(copy)});
  }
  return {};
}

ProcessIo::State::State(Relay& relay, StdioHost& host, StdioUri uri, StdioOptions options,
                        bool terminal)
    : relay_(relay),
      host_(host),
      uri_(std::move(uri)),
      options_(std::move(options)),
      terminal_(terminal),
      undecided_(options_.undecided) {}

Status ProcessIo::State::AdoptOpened(OpenedStdio opened) {
  std::vector<StoredFd> fds;
  {
    const MutexLock lock(mutex_);
    logger_ = std::move(opened.logger);
    stored_.insert(opened.held.begin(), opened.held.end());
  }
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    if (IsBinary(uri_) || Streams(stream)) {
      GANTRY_CHECK_OK(AddCopy(fds, kProcessNames[i], opened.process[i]));
    }
    GANTRY_CHECK_OK(AddCopy(fds, kHeldNames[i], opened.hold[i]));
    if (Streams(stream) && stream == Stream::kStdin) {
      GANTRY_CHECK_OK(AddCopy(fds, kFeedName, opened.hold[i]));
    }
  }
  GANTRY_CHECK_OK(Put(std::move(fds)));
  const MutexLock lock(mutex_);
  DropUnusedLocked(options_.left);
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    StateOf(stream).process = std::move(opened.process[i]);
    if (Streams(stream)) {
      BeginPumpLocked(stream, std::move(opened.hold[i]));
    } else if (stream == Stream::kStdin) {
      StateOf(stream).held_input = std::move(opened.hold[i]);
    } else if (opened.hold[i]) {
      KeepOutputLocked(stream, std::move(opened.hold[i]));
    }
  }
  return {};
}

Status ProcessIo::State::AdoptStored(std::vector<StoredFd> stored) {
  const MutexLock lock(mutex_);
  for (const StoredFd& fd : stored) {
    stored_.insert(fd.name);
  }
  if (IsBinary(uri_)) {
    logger_ = BinaryLogger::Recover(host_, options_.logger_tag);
  }
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    StateOf(stream).process = Extract(stored, kProcessNames[i]);
    StateOf(stream).pipe = Extract(stored, kPipeNames[i]);
    UniqueFd hold = Extract(stored, kHeldNames[i]);
    if (Streams(stream)) {
      const bool input = stream == Stream::kStdin;
      StateOf(stream).closing = input && !hold;
      BeginPumpLocked(stream, input ? Extract(stored, kFeedName) : std::move(hold));
      StreamFiles files{.socket = Extract(stored, kConnectionNames[i]),
                        .state = Extract(stored, kWireNames[i]),
                        .sent = Extract(stored, kSentNames[i]),
                        .received = Extract(stored, kReceivedNames[i])};
      GANTRY_CHECK_OK(TakeUpClientLocked(stream, std::move(files)));
    } else if (stream == Stream::kStdin) {
      StateOf(stream).held_input = std::move(hold);
    } else if (hold) {
      KeepOutputLocked(stream, std::move(hold));
    }
  }
  UniqueFd foreign = Extract(stored, kForeignName);
  console_foreign_ = bool(foreign);
  if (UniqueFd master = foreign ? std::move(foreign) : Extract(stored, kConsoleName)) {
    console_attached_ = true;
    console_ = std::move(master);
    replica_ = Extract(stored, kReplicaName);
    if (console_foreign_) {
      GANTRY_TRY(typed_, TypedSignals::Make());
    }
    GANTRY_TRY(UniqueFd from, console_.Duplicate());
    GANTRY_TRY(UniqueFd to, console_.Duplicate());
    GANTRY_CHECK_OK(BeginLocked(Stream::kStdout, std::move(from),
                                Extract(stored, kBufferNames[IndexOf(Stream::kStdout)])));
    GANTRY_CHECK_OK(BeginInputOnceStartedLocked(std::move(to)));
  }
  for (const Stream stream : kStreams) {
    UniqueFd buffer = Extract(stored, kBufferNames[IndexOf(stream)]);
    UniqueFd fd = Extract(stored, kStreamNames[IndexOf(stream)]);
    StateOf(stream).frames = {.state = Extract(stored, kFramesNames[IndexOf(stream)]),
                              .part = Extract(stored, kPartNames[IndexOf(stream)])};
    if (fd) {
      GANTRY_CHECK_OK(BeginLocked(stream, std::move(fd), std::move(buffer)));
    }
  }
  std::vector<std::string> unknown;
  unknown.reserve(stored.size());
  for (const StoredFd& fd : stored) {
    unknown.push_back(fd.name);
  }
  DropLocked(std::move(unknown));
  return {};
}

Status ProcessIo::State::Put(std::vector<StoredFd> fds) {
  if (fds.empty()) {
    return {};
  }
  {
    const MutexLock lock(mutex_);
    for (const StoredFd& fd : fds) {
      stored_.insert(fd.name);
    }
  }
  return host_.Put(std::move(fds));
}

/// What was left from before and did not get another meaning by now.
void ProcessIo::State::DropUnusedLocked(std::vector<std::string> left) {
  std::erase_if(left, [this](const std::string& name)
                          GANTRY_REQUIRES(mutex_) { return stored_.contains(name); });
  if (!left.empty()) {
    host_.Drop(std::move(left));
  }
}

void ProcessIo::State::DropLocked(std::vector<std::string> names) {
  std::erase_if(names, [this](const std::string& name)
                           GANTRY_REQUIRES(mutex_) { return stored_.erase(name) == 0; });
  if (!names.empty()) {
    host_.Drop(std::move(names));
  }
}

void ProcessIo::State::KeepOutputLocked(Stream stream, UniqueFd read_end) {
  StateOf(stream).writers = true;
  auto on_written = [self = weak_from_this(), stream] {
    if (const auto state = self.lock()) {
      Callbacks callbacks;
      {
        const MutexLock lock(state->mutex_);
        state->StateOf(stream).writers = false;
        callbacks = state->TakeCallbacksLocked();
      }
      for (auto& callback : callbacks) {
        callback();
      }
    }
  };
  auto hold = std::make_shared<OutputHold>(relay_, std::move(read_end), std::move(on_written),
                                           [self = weak_from_this(), stream] {
                                             if (const auto state = self.lock()) {
                                               const MutexLock lock(state->mutex_);
                                               if (state->closed_) {
                                                 return;
                                               }
                                               state->StateOf(stream).held_output = nullptr;
                                               state->DropLocked({kHeldNames[IndexOf(stream)]});
                                             }
                                           });
  StateOf(stream).held_output = hold;
  relay_.Post([hold] { hold->Begin(); });
}

Result<Stdio> ProcessIo::State::Take() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(taken_, true) || closed_) {
      return Fail(Code::kFailedPrecondition, "take stdio: taken already");
    }
  }
  GANTRY_CHECK_OK(MakeOwnPipes());
  const MutexLock lock(mutex_);
  Stdio stdio;
  stdio.terminal = terminal_;
  if (terminal_) {
    return stdio;
  }
  const std::array<StreamEnd*, 3> ends = {&stdio.in, &stdio.out, &stdio.err};
  for (const Stream stream : kStreams) {
    StreamEnd& end = *ends[IndexOf(stream)];
    if (uri_.kind == StdioKind::kFile && stream == Stream::kStderr && stdio.out.fd &&
        !StateOf(stream).attached) {
      GANTRY_TRY(end.fd, stdio.out.fd.Duplicate());
      continue;
    }
    const bool own = bool(StateOf(stream).pipe);
    if (!own && (StateOf(stream).attached || !StateOf(stream).process)) {
      continue;
    }
    end.fd = std::move(own ? StateOf(stream).pipe : StateOf(stream).process);
    GANTRY_CHECK_OK(SetNonblocking(end.fd.get(), false));
    if (uri_.kind == StdioKind::kFifo && !own) {
      end.path = PathOf(uri_, stream);
    }
  }
  return stdio;
}

void ProcessIo::State::Decide() {
  std::vector<EndedCopy> ended;
  {
    const MutexLock lock(mutex_);
    undecided_ = false;
    ended = std::exchange(ended_copies_, {});
  }
  for (const EndedCopy& one : ended) {
    OnOutputEnd(one.stream, one.end, one.dropped_bytes);
  }
}

void ProcessIo::State::Started() {
  Decide();
  const MutexLock lock(mutex_);
  started_ = true;
  if (waiting_input_ && !ended_ && !closed_) {
    // Frames need descriptors; what is stored is there for the next engine.
    if (const Status begun = BeginInputLocked(std::move(waiting_input_)); !begun) {
      host_.Log(LogLevel::kError, "stdin is not passed on: " + begun.error().message);
    }
  }
  ReleaseEndsLocked();
  TakeClientsLocked();
}

void ProcessIo::State::ReleaseEndsLocked() {
  if (replica_ && (started_ || ended_)) {
    replica_.reset();
    DropLocked({kReplicaName});
  }
  for (const Stream stream : kStreams) {
    // A console may still come, and will need these two.
    const bool for_console = terminal_ && !ended_ && stream != Stream::kStderr;
    if (started_) {
      StateOf(stream).pipe.reset();
      DropLocked({kPipeNames[IndexOf(stream)]});
    }
    if (started_ && !StateOf(stream).attached && !for_console) {
      StateOf(stream).process.reset();
      DropLocked({kProcessNames[IndexOf(stream)]});
    }
  }
}

Status ProcessIo::State::Resize(ConsoleSize size) {
  const MutexLock lock(mutex_);
  size_ = size;
  if (!console_) {
    return {};
  }
  GANTRY_CHECK_OK(os::SetWindowSize(console_.get(), size.width, size.height));
  if (console_foreign_) {
    host_.ConsoleSignal(SIGWINCH);
  }
  return {};
}

void ProcessIo::State::CloseStdin() {
  const MutexLock lock(mutex_);
  StreamState& in = StateOf(Stream::kStdin);
  in.held_input.reset();
  DropLocked({kHeldNames[IndexOf(Stream::kStdin)]});
  in.closing = true;
  EndInputWithClientLocked();
}

}  // namespace gantry::io
