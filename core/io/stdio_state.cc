// SPDX-License-Identifier: Apache-2.0
#include "core/io/stdio_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/splice.h"

namespace gantry::io {

namespace {

/// How long a logger has for the rest of its input before it is told to end.
constexpr auto kLoggerGrace = std::chrono::seconds(1);

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
      terminal_(terminal) {}

Status ProcessIo::State::AdoptOpened(OpenedStdio opened) {
  std::vector<StoredFd> fds;
  {
    const Lock lock(mutex_);
    logger_ = std::move(opened.logger);
    stored_.insert(opened.held.begin(), opened.held.end());
  }
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    if (IsBinary(uri_)) {
      GANTRY_CHECK_OK(AddCopy(fds, kProcessNames[i], opened.process[i]));
    }
    GANTRY_CHECK_OK(AddCopy(fds, kKeeperNames[i], opened.keeper[i]));
  }
  GANTRY_CHECK_OK(Put(std::move(fds)));
  const Lock lock(mutex_);
  DropUnusedLocked(options_.left);
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    leg(stream).process = std::move(opened.process[i]);
    if (stream == Stream::kStdin) {
      leg(stream).in_keeper = std::move(opened.keeper[i]);
    } else if (opened.keeper[i]) {
      KeepOutput(stream, std::move(opened.keeper[i]));
    }
  }
  return {};
}

Status ProcessIo::State::AdoptStored(std::vector<StoredFd> stored) {
  const Lock lock(mutex_);
  for (const StoredFd& fd : stored) {
    stored_.insert(fd.name);
  }
  if (IsBinary(uri_)) {
    logger_ = BinaryLogger::Recover(host_, options_.logger_tag);
  }
  for (const Stream stream : kStreams) {
    const size_t i = IndexOf(stream);
    leg(stream).process = Extract(stored, kProcessNames[i]);
    leg(stream).pipe = Extract(stored, kPipeNames[i]);
    UniqueFd keeper = Extract(stored, kKeeperNames[i]);
    if (stream == Stream::kStdin) {
      leg(stream).in_keeper = std::move(keeper);
    } else if (keeper) {
      KeepOutput(stream, std::move(keeper));
    }
  }
  if (UniqueFd master = Extract(stored, kConsoleName)) {
    console_attached_ = true;
    console_ = std::move(master);
    if (Extract(stored, kForeignName)) {
      console_foreign_ = true;
      GANTRY_TRY(typed_, TypedSignals::Make());
    }
    GANTRY_TRY(UniqueFd from, console_.Duplicate());
    GANTRY_TRY(UniqueFd to, console_.Duplicate());
    GANTRY_CHECK_OK(BeginLocked(Stream::kStdout, std::move(from),
                                Extract(stored, kBufferNames[IndexOf(Stream::kStdout)])));
    GANTRY_CHECK_OK(BeginConsoleInputLocked(std::move(to)));
  }
  for (const Stream stream : kStreams) {
    UniqueFd buffer = Extract(stored, kBufferNames[IndexOf(stream)]);
    UniqueFd fd = Extract(stored, kStreamNames[IndexOf(stream)]);
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
    const Lock lock(mutex_);
    for (const StoredFd& fd : fds) {
      stored_.insert(fd.name);
    }
  }
  return host_.Put(std::move(fds));
}

/// What was left from before and did not get another meaning by now.
void ProcessIo::State::DropUnusedLocked(std::vector<std::string> left) {
  std::erase_if(left, [this](const std::string& name) { return stored_.contains(name); });
  if (!left.empty()) {
    host_.Drop(std::move(left));
  }
}

void ProcessIo::State::DropLocked(std::vector<std::string> names) {
  std::erase_if(names, [this](const std::string& name) { return stored_.erase(name) == 0; });
  if (!names.empty()) {
    host_.Drop(std::move(names));
  }
}

void ProcessIo::State::KeepOutput(Stream stream, UniqueFd read_end) {
  leg(stream).writers = true;
  auto on_written = [self = weak_from_this(), stream] {
    if (const auto state = self.lock()) {
      Callbacks callbacks;
      {
        const Lock lock(state->mutex_);
        state->leg(stream).writers = false;
        callbacks = state->TakeCallbacksLocked();
      }
      for (auto& callback : callbacks) {
        callback();
      }
    }
  };
  auto keeper = std::make_shared<OutputKeeper>(
      relay_, std::move(read_end), std::move(on_written), [self = weak_from_this(), stream] {
        if (const auto state = self.lock()) {
          const Lock lock(state->mutex_);
          if (state->closed_) {
            return;
          }
          state->leg(stream).out_keeper = nullptr;
          state->DropLocked({kKeeperNames[IndexOf(stream)]});
        }
      });
  leg(stream).out_keeper = keeper;
  relay_.Post([keeper] { keeper->Begin(); });
}

Result<Stdio> ProcessIo::State::Take() {
  {
    const Lock lock(mutex_);
    if (std::exchange(taken_, true) || closed_) {
      return Fail(Code::kFailedPrecondition, "take stdio: taken already");
    }
  }
  GANTRY_CHECK_OK(MakeOwnPipes());
  const Lock lock(mutex_);
  Stdio stdio;
  stdio.terminal = terminal_;
  if (terminal_) {
    return stdio;
  }
  const std::array<StreamEnd*, 3> ends = {&stdio.in, &stdio.out, &stdio.err};
  for (const Stream stream : kStreams) {
    StreamEnd& end = *ends[IndexOf(stream)];
    if (uri_.kind == StdioKind::kFile && stream == Stream::kStderr && stdio.out.fd &&
        !leg(stream).attached) {
      GANTRY_TRY(end.fd, stdio.out.fd.Duplicate());
      continue;
    }
    const bool own = bool(leg(stream).pipe);
    if (!own && (leg(stream).attached || !leg(stream).process)) {
      continue;
    }
    end.fd = std::move(own ? leg(stream).pipe : leg(stream).process);
    GANTRY_CHECK_OK(SetNonblocking(end.fd.get(), false));
    if (uri_.kind == StdioKind::kFifo && !own) {
      end.path = PathOf(uri_, stream);
    }
  }
  return stdio;
}

void ProcessIo::State::Started() {
  const Lock lock(mutex_);
  started_ = true;
  if (waiting_input_ && !ended_ && !closed_) {
    BeginInputLocked(std::move(waiting_input_));
  }
  ReleaseEndsLocked();
}

void ProcessIo::State::ReleaseEndsLocked() {
  for (const Stream stream : kStreams) {
    // A console may still come, and will need these two.
    const bool for_console = terminal_ && !ended_ && stream != Stream::kStderr;
    if (started_) {
      leg(stream).pipe.reset();
      DropLocked({kPipeNames[IndexOf(stream)]});
    }
    if (started_ && !leg(stream).attached && !for_console) {
      leg(stream).process.reset();
      DropLocked({kProcessNames[IndexOf(stream)]});
    }
  }
}

Status ProcessIo::State::Resize(ConsoleSize size) {
  const Lock lock(mutex_);
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
  const Lock lock(mutex_);
  leg(Stream::kStdin).in_keeper.reset();
  DropLocked({kKeeperNames[IndexOf(Stream::kStdin)]});
}

void ProcessIo::State::StopInputLocked() {
  Leg& in = leg(Stream::kStdin);
  if (const CopyId copy = std::exchange(in.copy, 0); copy != 0) {
    relay_.Post([&relay = relay_, copy] { relay.Stop(copy); });
  }
  in.copying = false;
  in.process.reset();
  in.in_keeper.reset();
  DropLocked({"stdin-r", "stdin-w", "stream-in"});
}

void ProcessIo::State::Ended() {
  Callbacks callbacks;
  {
    const Lock lock(mutex_);
    ended_ = true;
    waiting_input_.reset();
    StopInputLocked();
    if (console_attached_) {
      relay_.Finish(leg(Stream::kStdout).copy);
    }
    for (const Leg& one : legs_) {
      // Nobody waits for the end of a file.
      if (one.copying && !terminal_ && uri_.kind == StdioKind::kFifo) {
        relay_.FinishWhenIdle(one.copy, options_.heirs_limit);
      }
    }
    ReleaseEndsLocked();
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

bool ProcessIo::State::DrainedLocked() const {
  return closed_ || (ended_ && std::ranges::none_of(legs_, &Leg::copying) &&
                     std::ranges::none_of(legs_, &Leg::writers));
}

ProcessIo::State::Callbacks ProcessIo::State::TakeCallbacksLocked() {
  return DrainedLocked() ? std::exchange(on_drained_, {}) : Callbacks();
}

void ProcessIo::State::WhenDrained(std::move_only_function<void()> done) {
  Callbacks callbacks;
  {
    const Lock lock(mutex_);
    on_drained_.push_back(std::move(done));
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

size_t ProcessIo::State::UnreadBytes() {
  if (uri_.kind != StdioKind::kFifo) {
    return 0;
  }
  const Lock lock(mutex_);
  size_t unread = 0;
  for (const Leg& one : legs_) {
    // What leaves the pipe between the two looks is then in the fifo.
    unread += one.copied_pipe ? os::BytesQueued(one.copied_pipe.get()).value_or(0)
              : one.copying   ? 1
                              : 0;
    unread += one.out_keeper ? one.out_keeper->UnreadBytes() : 0;
  }
  return unread;
}

std::vector<CopyId> ProcessIo::State::TakeCopiesLocked() {
  std::vector<CopyId> copies;
  for (Leg& one : legs_) {
    copies.push_back(std::exchange(one.copy, 0));
    copies.push_back(std::exchange(one.file_copy, 0));
    if (one.out_keeper) {
      relay_.Post([keeper = std::exchange(one.out_keeper, nullptr)] { keeper->Release(); });
    }
  }
  return copies;
}

void ProcessIo::State::Abandon() {
  CopyId input = 0;
  {
    const Lock lock(mutex_);
    input = std::exchange(leg(Stream::kStdin).copy, 0);
  }
  // First, and while signals are still passed on: their characters have been moved.
  relay_.Stop(input);
  std::vector<CopyId> copies;
  {
    const Lock lock(mutex_);
    // What ends while the copies are stopped one by one has not really ended.
    closed_ = true;
    copies = TakeCopiesLocked();
  }
  for (const CopyId copy : copies) {
    relay_.Stop(copy);
  }
}

void ProcessIo::State::Close() {
  std::unique_ptr<BinaryLogger> logger;
  Callbacks callbacks;
  std::vector<CopyId> copies;
  std::vector<CopyId> held_by_heirs;
  {
    const Lock lock(mutex_);
    for (const Leg& one : legs_) {
      if (one.copying && !terminal_) {
        held_by_heirs.insert(held_by_heirs.end(), {one.copy, one.file_copy});
      }
    }
  }
  for (const CopyId copy : held_by_heirs) {
    relay_.Flush(copy);
  }
  {
    const Lock lock(mutex_);
    closed_ = true;
    copies = TakeCopiesLocked();
    logger = std::move(logger_);
    callbacks = TakeCallbacksLocked();
  }
  for (const CopyId copy : copies) {
    relay_.Stop(copy);
  }
  {
    const Lock lock(mutex_);
    for (Leg& one : legs_) {
      one = Leg();
    }
    console_.reset();
    DropLocked(std::vector<std::string>(stored_.begin(), stored_.end()));
  }
  for (auto& callback : callbacks) {
    callback();
  }
  if (logger) {
    logger->Stop(kLoggerGrace, options_.logger_stop);
  }
}

}  // namespace gantry::io
