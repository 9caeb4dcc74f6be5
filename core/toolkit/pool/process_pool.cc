// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pool/process_pool.h>

#include "core/toolkit/pool/pool_folder.h"

namespace gantry {

ProcessPool::ProcessPool(SandboxContext& context, std::vector<PoolHandler> handlers,
                         PoolMaker maker, PoolTimes times)
    : context_(context),
      maker_(std::move(maker)),
      times_(times),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  uint32_t left = kMaxPooled;
  for (PoolHandler& handler : handlers) {
    AccountQueue queue;
    queue.number = queues_.size();
    queue.handler = std::move(handler);
    uint32_t& wanted = queue.handler.wanted;
    if (wanted > left) {
      context_.Log(
          LogLevel::kWarning,
          Format("handler '{}': {} pre-booted sandboxes instead of {}: there are {} in all",
                 queue.handler.name, left, wanted, kMaxPooled));
      wanted = left;
    }
    left -= wanted;
    queues_.push_back(std::move(queue));
  }
  thread_ = std::thread([this] { Run(); });
}

ProcessPool::~ProcessPool() {
  Leave();
  thread_.join();
}

void ProcessPool::Wake() const {
  const uint64_t one = 1;
  // Full means that it has been woken. NOLINTNEXTLINE(bugprone-unused-return-value)
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void ProcessPool::Leave() {
  std::vector<std::string> paths;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    paths = std::exchange(paths_, {});
    for (const AccountQueue& queue : queues_) {
      for (const Ready& one : queue.ready) {
        IgnoreError(one.held->process->Signal(SIGKILL), "it may have ended by itself");
      }
    }
    if (making_) {
      IgnoreError(making_->Signal(SIGKILL), "it may have ended by itself");
    }
  }
  Wake();
  for (const std::string& path : paths) {
    IgnoreError(RemoveTree(path), "the next engine tries again");
  }
}

bool ProcessPool::IsLeaving() const {
  const std::lock_guard lock(mutex_);
  return leaving_;
}

bool ProcessPool::Ready::HasEnded() const {
  // The keeper tells of it a little later.
  pollfd one = {.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return !pidfd || poll(&one, 1, 0) == 1;
}

ProcessPool::Taken ProcessPool::Take(const Difference& difference) {
  const std::lock_guard lock(mutex_);
  std::string_view missing = "none is ready";
  for (AccountQueue& queue : queues_) {
    if (leaving_ || Clock::now() < queue.useless_until) {
      continue;
    }
    for (auto one = queue.ready.begin(); one != queue.ready.end(); ++one) {
      if (one->HasEnded()) {
        continue;
      }
      if (const std::string_view other = difference(*one->held); !other.empty()) {
        missing = other;
        break;
      }
      Taken taken{.process = std::move(one->held), .handler = queue.handler.name, .missing = {}};
      queue.ready.erase(one);
      ++queue.taken;
      return taken;
    }
  }
  return {.process = {}, .handler = {}, .missing = missing};
}

ProcessPool::Taken ProcessPool::Starting::Take(const Difference& difference) {
  return pool_->Take(difference);
}

void ProcessPool::Starting::Report(const std::string& handler, bool of_use) {
  const std::lock_guard lock(pool_->mutex_);
  for (AccountQueue& queue : pool_->queues_) {
    if (queue.handler.name != handler) {
      continue;
    }
    if (of_use) {
      queue.failures = 0;
    } else {
      pool_->Postpone(queue);
      queue.useless_until = queue.not_before;
    }
  }
}

ProcessPool::Starting::Starting(ProcessPool* pool) : pool_(pool) {
  if (pool_ != nullptr) {
    const std::lock_guard lock(pool_->mutex_);
    ++pool_->starting_;
  }
}

ProcessPool::Starting::~Starting() {
  if (pool_ == nullptr) {
    return;
  }
  {
    const std::lock_guard lock(pool_->mutex_);
    --pool_->starting_;
    pool_->quiet_from_ = Clock::now() + pool_->times_.quiet;
  }
  pool_->Wake();
}

std::vector<BackendCount> ProcessPool::Counts() const {
  const std::lock_guard lock(mutex_);
  return CountLocked();
}

bool ProcessPool::AwaitForTest(const std::function<bool(const std::vector<BackendCount>&)>& what,
                               std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return what(CountLocked()); });
}

std::vector<BackendCount> ProcessPool::CountLocked() const {
  std::vector<BackendCount> counts;
  for (const AccountQueue& queue : queues_) {
    const std::string& name = queue.handler.name;
    counts.push_back({name, "warm_wanted", queue.handler.wanted});
    counts.push_back({name, "warm_ready", queue.ready.size()});
    counts.push_back({name, "warm_booting", queue.making ? uint64_t{1} : uint64_t{0}});
    counts.push_back({name, "warm_taken", queue.taken});
    counts.push_back({name, "warm_failed", queue.failed});
  }
  return counts;
}

}  // namespace gantry
