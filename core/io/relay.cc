// SPDX-License-Identifier: Apache-2.0
//
// The threads that copy: one for streams, and one for log files, made with the first of them,
// since their file system may hang. A copy is known by its number, and only its thread touches
// it: others post what is to be done. `Stop` and `Flush` wait until it has been done, so that
// their caller may close or use the descriptors.
#include "core/io/relay.h"

#include <future>
#include <unordered_map>
#include <utility>

#include "core/io/copy.h"
#include "core/io/file_uses.h"
#include "core/os/fifo.h"

namespace gantry::io {

/// One thread and what it copies.
class Relay::CopyThread {
 public:
  CopyThread() {
    thread_ = std::jthread([this] {
      os::BlockSignals();
      loop_.Run();
    });
  }

  ~CopyThread() {
    Halt();
    for (auto& [id, copy] : std::exchange(running_, {})) {
      copy->Abandon();
    }
  }

  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  async::Loop& loop() { return loop_; }

  /// Nothing runs any more. Again: harmless.
  void Halt() {
    loop_.Stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void Start(CopyId id, CopySpec spec) {
    loop_.Post([this, id, spec = std::move(spec)]() mutable {
      auto copy =
          std::make_shared<Copy>(loop_, std::move(spec), [this, id] { running_.erase(id); });
      running_.emplace(id, copy);
      copy->Run();
    });
  }

  /// Later, on its thread.
  void Tell(CopyId id, std::move_only_function<void(Copy&)> what) {
    loop_.Post([this, id, what = std::move(what)]() mutable { Apply(id, what); });
  }

  /// On its thread, and done when this returns.
  void Ask(CopyId id, std::move_only_function<void(Copy&)> what) {
    Do([this, id, what = std::move(what)]() mutable { Apply(id, what); });
  }

  void Do(std::move_only_function<void()> function) {
    if (loop_.IsLoopThread()) {
      function();
      return;
    }
    // Shared, so that it outlives the call that sets it.
    const auto done = std::make_shared<std::promise<void>>();
    loop_.Post([function = std::move(function), done]() mutable {
      function();
      done->set_value();
    });
    done->get_future().wait();
  }

 private:
  void Apply(CopyId id, std::move_only_function<void(Copy&)>& what) {
    if (const auto found = running_.find(id); found != running_.end()) {
      what(*std::shared_ptr(found->second));
    }
  }

  async::Loop loop_;
  /// Thread: its own.
  std::unordered_map<CopyId, std::shared_ptr<Copy>> running_;
  std::jthread thread_;
};

Relay::Relay()
    : streams_(std::make_unique<CopyThread>()),
      uses_(std::make_unique<FileUses>(streams_->loop())) {}

Relay::~Relay() {
  // What runs on the threads may use all of this.
  streams_->Halt();
  uses_.reset();
}

CopyId Relay::Start(CopySpec spec) {
  const bool to_file = spec.sink_kind == SinkKind::kFile;
  if (to_file) {
    std::call_once(files_made_, [this] { files_ = std::make_unique<CopyThread>(); });
  }
  // Odd numbers are those of copies into files.
  const CopyId id = 2 * next_id_.fetch_add(1, std::memory_order_relaxed) + (to_file ? 1 : 0);
  ThreadOf(id).Start(id, std::move(spec));
  return id;
}

Relay::CopyThread& Relay::ThreadOf(CopyId copy) {
  return copy % 2 == 1 && files_ ? *files_ : *streams_;
}

void Relay::Finish(CopyId copy) {
  ThreadOf(copy).Tell(copy, [](Copy& running) { running.Finish(); });
}

void Relay::FinishWhenIdle(CopyId copy, async::Duration idle) {
  ThreadOf(copy).Tell(copy, [idle](Copy& running) { running.FinishWhenIdle(idle); });
}

void Relay::Flush(CopyId copy) {
  if (copy != 0) {
    ThreadOf(copy).Ask(copy, [](Copy& running) { running.Flush(); });
  }
}

void Relay::Stop(CopyId copy) {
  if (copy != 0) {
    ThreadOf(copy).Ask(copy, [](Copy& running) { running.Abandon(); });
  }
}

void Relay::Post(std::move_only_function<void()> function) {
  streams_->loop().Post(std::move(function));
}

void Relay::Do(std::move_only_function<void()> function) { streams_->Do(std::move(function)); }

async::Loop& Relay::loop() { return streams_->loop(); }

FileUses& Relay::uses() { return *uses_; }

}  // namespace gantry::io
