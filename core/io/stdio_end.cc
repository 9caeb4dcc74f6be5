// SPDX-License-Identifier: Apache-2.0
//
// How the streams of a process end: with it, when they have been read out, by Close, or with this
// engine.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/io/stdio_state.h"
#include "core/os/splice.h"

namespace gantry::io {
namespace {

/// How long a logger has for the rest of its input before it is told to end.
constexpr auto kLoggerGrace = std::chrono::seconds(1);

}  // namespace

void ProcessIo::State::StopInputLocked() {
  StreamState& in = StateOf(Stream::kStdin);
  if (const CopyId copy = std::exchange(in.copy, 0); copy != 0) {
    relay_.Post([&relay = relay_, copy] { relay.Stop(copy); });
  }
  in.copying = false;
  in.process.reset();
  in.held_input.reset();
  in.frames = {};
  if (in.input) {
    relay_.Post([input = in.input] { input->Refuse(); });
  }
  DropLocked({"stdin-r", "stdin-w", kFeedName, "stream-in", "frames-in", "part-in"});
}

void ProcessIo::State::Ended() {
  Decide();
  Callbacks callbacks;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    waiting_input_.reset();
    StopInputLocked();
    if (console_attached_) {
      relay_.Finish(StateOf(Stream::kStdout).copy);
    }
    for (const StreamState& one : streams_) {
      // Nobody waits for the end of a file.
      if (one.copying && !console_attached_ && IsPassedOn(uri_)) {
        relay_.FinishWhenIdle(one.copy, options_.heirs_limit);
      }
    }
    ReleaseEndsLocked();
    TakeClientsLocked();
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

bool ProcessIo::State::DrainedLocked() const {
  return closed_ || (ended_ && std::ranges::none_of(streams_, &StreamState::copying) &&
                     std::ranges::none_of(streams_, &StreamState::writers) &&
                     std::ranges::none_of(streams_, AwaitsClient));
}

ProcessIo::State::Callbacks ProcessIo::State::TakeCallbacksLocked() {
  return DrainedLocked() ? std::exchange(on_drained_, {}) : Callbacks();
}

void ProcessIo::State::WhenDrained(std::move_only_function<void()> done) {
  Callbacks callbacks;
  {
    const MutexLock lock(mutex_);
    on_drained_.push_back(std::move(done));
    callbacks = TakeCallbacksLocked();
  }
  for (auto& callback : callbacks) {
    callback();
  }
}

size_t ProcessIo::State::UnreadBytes() {
  if (!IsPassedOn(uri_)) {
    return 0;
  }
  const MutexLock lock(mutex_);
  size_t unread = 0;
  for (const StreamState& one : streams_) {
    // What leaves the pipe between the two looks is then in the fifo.
    unread += one.copied_pipe ? os::BytesQueued(one.copied_pipe.get()).value_or(0)
              : one.copying   ? 1
                              : 0;
    unread += one.held_output ? one.held_output->UnreadBytes() : 0;
    unread += one.output ? one.output->Unsent() : 0;
    // It has heard all when it has answered the end.
    unread += ended_ && AwaitsClient(one) ? 1 : 0;
  }
  return unread;
}

std::vector<CopyId> ProcessIo::State::TakeCopiesLocked() {
  std::vector<CopyId> copies;
  for (StreamState& one : streams_) {
    copies.push_back(std::exchange(one.copy, 0));
    copies.push_back(std::exchange(one.file_copy, 0));
    if (one.held_output) {
      relay_.Post([hold = std::exchange(one.held_output, nullptr)] { hold->Release(); });
    }
  }
  return copies;
}

void ProcessIo::State::Abandon() {
  host_.ForgetStreams();
  CopyId input = 0;
  {
    const MutexLock lock(mutex_);
    input = std::exchange(StateOf(Stream::kStdin).copy, 0);
  }
  // First, and while signals are still passed on: their characters have been moved.
  relay_.Stop(input);
  std::vector<CopyId> copies;
  {
    const MutexLock lock(mutex_);
    // What ends while the copies are stopped one by one has not really ended.
    closed_ = true;
    copies = TakeCopiesLocked();
  }
  for (const CopyId copy : copies) {
    relay_.Stop(copy);
  }
  AbandonPumps();
}

void ProcessIo::State::Close() {
  host_.ForgetStreams();
  std::unique_ptr<BinaryLogger> logger;
  Callbacks callbacks;
  std::vector<CopyId> copies;
  std::vector<CopyId> held_by_heirs;
  {
    const MutexLock lock(mutex_);
    for (const StreamState& one : streams_) {
      if (one.copying && !console_attached_) {
        held_by_heirs.insert(held_by_heirs.end(), {one.copy, one.file_copy});
      }
    }
  }
  for (const CopyId copy : held_by_heirs) {
    relay_.Flush(copy);
  }
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    copies = TakeCopiesLocked();
    logger = std::move(logger_);
    callbacks = TakeCallbacksLocked();
  }
  for (const CopyId copy : copies) {
    relay_.Stop(copy);
  }
  {
    const MutexLock lock(mutex_);
    ReleasePumpsLocked();
    for (StreamState& one : streams_) {
      one = StreamState();
    }
    console_.reset();
    replica_.reset();
    waiting_input_.reset();
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
