// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/warm/warm_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {

WarmMaker MakeWarmMaker(SandboxContext& context, const std::shared_ptr<Runscs>& runscs) {
  return {.boot =
              [&context, runscs](const WarmHandler& handler, const std::string& folder,
                                 const WarmSpawned& spawned) {
                return BootWarm(context, *runscs, handler, folder, spawned);
              },
          .build = [runscs](const WarmHandler& handler) -> Result<std::string> {
            GANTRY_TRY(const std::string binary, FindRunsc(handler.options));
            GANTRY_TRY(const auto runsc, runscs->Get(binary));
            return BuildOf(*runsc);
          }};
}

WarmPool::WarmPool(SandboxContext& context, std::vector<WarmHandler> handlers, WarmMaker maker,
                   WarmTimes times)
    : context_(context),
      maker_(std::move(maker)),
      times_(times),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  uint32_t left = kMaxWarmOfAll;
  for (WarmHandler& handler : handlers) {
    Lane lane;
    lane.wanted = std::min(handler.options.warm, left);
    if (lane.wanted < handler.options.warm) {
      context_.Log(
          LogLevel::kWarning,
          Format("handler '{}': {} pre-booted sandboxes instead of {}: there are {} in all",
                 handler.name, lane.wanted, handler.options.warm, kMaxWarmOfAll));
    }
    left -= lane.wanted;
    lane.handler = std::move(handler);
    lanes_.push_back(std::move(lane));
  }
  thread_ = std::thread([this] { Run(); });
}

WarmPool::~WarmPool() {
  Leave();
  thread_.join();
}

void WarmPool::Wake() const {
  const uint64_t one = 1;
  // Full means that it has been woken. NOLINTNEXTLINE(bugprone-unused-return-value)
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void WarmPool::Leave() {
  std::vector<std::string> paths;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    paths = std::exchange(paths_, {});
    for (const Lane& lane : lanes_) {
      for (const Ready& one : lane.ready) {
        IgnoreError(one.entry.process->Signal(SIGKILL), "it may have ended by itself");
      }
    }
    if (booting_) {
      IgnoreError(booting_->Signal(SIGKILL), "it may have ended by itself");
    }
  }
  Wake();
  for (const std::string& path : paths) {
    IgnoreError(RemoveTree(path), "the next engine tries again");
  }
}

bool WarmPool::IsLeaving() const {
  const std::lock_guard lock(mutex_);
  return leaving_;
}

bool WarmPool::Ready::HasEnded() const {
  // The keeper tells of it a little later.
  pollfd one = {.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return !pidfd || poll(&one, 1, 0) == 1;
}

WarmPool::Taken WarmPool::Take(const WarmKey& key) {
  const std::lock_guard lock(mutex_);
  std::string_view missing = "none is ready";
  for (Lane& lane : lanes_) {
    if (leaving_ || Clock::now() < lane.useless_until) {
      continue;
    }
    for (auto one = lane.ready.begin(); one != lane.ready.end(); ++one) {
      if (one->HasEnded()) {
        continue;
      }
      if (const std::string_view other = DifferenceOf(one->entry.key, key); !other.empty()) {
        missing = other;
        break;
      }
      Taken taken{.entry = std::move(one->entry), .handler = lane.handler.name, .missing = {}};
      lane.ready.erase(one);
      ++lane.taken;
      return taken;
    }
  }
  return {.entry = {}, .handler = {}, .missing = missing};
}

WarmPool::Taken WarmPool::Starting::Take(const WarmKey& key) { return pool_->Take(key); }

void WarmPool::Starting::Report(const std::string& handler, bool of_use) {
  const std::lock_guard lock(pool_->mutex_);
  for (Lane& lane : pool_->lanes_) {
    if (lane.handler.name != handler) {
      continue;
    }
    if (of_use) {
      lane.failures = 0;
    } else {
      pool_->Postpone(lane);
      lane.useless_until = lane.not_before;
    }
  }
}

WarmPool::Starting::Starting(WarmPool* pool) : pool_(pool) {
  if (pool_ != nullptr) {
    const std::lock_guard lock(pool_->mutex_);
    ++pool_->starting_;
  }
}

WarmPool::Starting::~Starting() {
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

std::vector<BackendCount> WarmPool::Counts() const {
  const std::lock_guard lock(mutex_);
  return CountLocked();
}

bool WarmPool::AwaitForTest(const std::function<bool(const std::vector<BackendCount>&)>& what,
                            std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return what(CountLocked()); });
}

std::vector<BackendCount> WarmPool::CountLocked() const {
  std::vector<BackendCount> counts;
  for (const Lane& lane : lanes_) {
    const std::string& name = lane.handler.name;
    counts.push_back({name, "warm_wanted", lane.wanted});
    counts.push_back({name, "warm_ready", lane.ready.size()});
    counts.push_back({name, "warm_booting", lane.booting ? uint64_t{1} : uint64_t{0}});
    counts.push_back({name, "warm_taken", lane.taken});
    counts.push_back({name, "warm_failed", lane.failed});
  }
  return counts;
}

}  // namespace gantry::gvisor
