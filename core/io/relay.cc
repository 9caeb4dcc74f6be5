// SPDX-License-Identifier: Apache-2.0
#include "core/io/relay.h"

#include <atomic>
#include <future>
#include <unordered_map>
#include <utility>

#include "core/io/copy.h"
#include "core/os/fifo.h"

namespace gantry::io {

class Relay::Copies {
 public:
  std::atomic<CopyId> next_id{1};
  /// Thread: the relay's.
  std::unordered_map<CopyId, std::shared_ptr<Copy>> running;
};

Relay::Relay() : copies_(std::make_unique<Copies>()) {
  thread_ = std::jthread([this] {
    os::BlockSignals();
    loop_.Run();
  });
}

Relay::~Relay() {
  loop_.Stop();
  thread_.join();
  for (auto& [id, copy] : std::exchange(copies_->running, {})) {
    copy->Abandon();
  }
}

CopyId Relay::Start(CopySpec spec) {
  const CopyId id = copies_->next_id.fetch_add(1, std::memory_order_relaxed);
  loop_.Post([this, id, spec = std::move(spec)]() mutable {
    auto copy =
        std::make_shared<Copy>(loop_, std::move(spec), [this, id] { copies_->running.erase(id); });
    copies_->running.emplace(id, copy);
    copy->Run();
  });
  return id;
}

void Relay::Finish(CopyId copy) {
  loop_.Post([this, copy] {
    const auto found = copies_->running.find(copy);
    if (found != copies_->running.end()) {
      std::shared_ptr(found->second)->Finish();
    }
  });
}

void Relay::FinishWhenIdle(CopyId copy, os::Duration idle) {
  loop_.Post([this, copy, idle] {
    const auto found = copies_->running.find(copy);
    if (found != copies_->running.end()) {
      std::shared_ptr(found->second)->FinishWhenIdle(idle);
    }
  });
}

void Relay::Flush(CopyId copy) { Call(copy, &Copy::Flush); }

void Relay::Stop(CopyId copy) { Call(copy, &Copy::Abandon); }

/// On the IO thread, and has returned when this does.
void Relay::Call(CopyId copy, void (Copy::*method)()) {
  const auto call = [this, copy, method] {
    const auto found = copies_->running.find(copy);
    if (found != copies_->running.end()) {
      (*std::shared_ptr(found->second).*method)();
    }
  };
  if (copy == 0) {
    return;
  }
  if (loop_.IsLoopThread()) {
    call();
    return;
  }
  // Shared, so that it outlives the call that sets it.
  const auto done = std::make_shared<std::promise<void>>();
  loop_.Post([call, done] {
    call();
    done->set_value();
  });
  done->get_future().wait();
}

void Relay::Post(std::move_only_function<void()> function) { loop_.Post(std::move(function)); }

os::Loop& Relay::loop() { return loop_; }

}  // namespace gantry::io
