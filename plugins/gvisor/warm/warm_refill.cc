// SPDX-License-Identifier: Apache-2.0
//
// The pool's thread.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/warm/warm_pool.h"

namespace gantry::gvisor {

void WarmPool::Run() {
  while (!IsLeaving()) {
    Sort();
    std::optional<Clock::time_point> look_again;
    if (Lane* const lane = Next(look_again)) {
      Fill(*lane);
    } else if (!IsLeaving()) {
      Wait(look_again);
    }
  }
  for (Lane& lane : lanes_) {
    for (const Ready& one : TakeOut(lane, {})) {
      Discard(one.entry);
    }
  }
}

std::chrono::milliseconds WarmPool::Postpone(Lane& lane) {
  constexpr uint32_t kMostDoubled = 20;
  const auto pause = std::min(times_.longest_pause,
                              times_.first_pause * (1U << std::min(lane.failures, kMostDoubled)));
  ++lane.failures;
  ++lane.failed;
  lane.not_before = Clock::now() + pause;
  return pause;
}

/// `build`: as it is now.
std::vector<WarmPool::Ready> WarmPool::TakeOut(Lane& lane, const std::string& build) {
  const std::lock_guard lock(mutex_);
  std::vector<Ready> out;
  for (auto one = lane.ready.begin(); one != lane.ready.end();) {
    const bool ended = one->HasEnded();
    if (!ended && one->entry.key.build == build) {
      ++one;
      continue;
    }
    if (ended && !leaving_) {
      if (Clock::now() - one->since >= times_.long_life) {
        lane.failures = 0;
      }
      Postpone(lane);
    }
    out.push_back(std::move(*one));
    one = lane.ready.erase(one);
  }
  return out;
}

void WarmPool::Sort() {
  for (Lane& lane : lanes_) {
    const std::string build = maker_.build(lane.handler).value_or("");
    for (const Ready& one : TakeOut(lane, build)) {
      const std::string whose = Format("handler '{}': a pre-booted sandbox ", lane.handler.name);
      if (IsLeaving()) {
        // It was ended for that.
      } else if (one.HasEnded()) {
        context_.Log(LogLevel::kWarning,
                     whose + "has ended by itself: " + LastWords(one.entry.log));
      } else {
        context_.Log(LogLevel::kInfo, whose + "is of another build of runsc than new ones: ended");
      }
      Discard(one.entry);
      changed_.notify_all();
    }
  }
}

WarmPool::Lane* WarmPool::Next(std::optional<Clock::time_point>& look_again) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto at = [&](Clock::time_point then) {
    look_again = std::min(look_again.value_or(then), then);
  };
  for (Lane& lane : lanes_) {
    if (leaving_ || lane.ready.size() >= lane.wanted) {
      lane.due.reset();
      continue;
    }
    if (now < lane.not_before) {
      lane.due.reset();
      at(lane.not_before);
      continue;
    }
    lane.due = lane.due.value_or(now);
    const auto patient = *lane.due + times_.patience;
    if (now < patient && (starting_ > 0 || now < quiet_from_)) {
      at(starting_ > 0 ? patient : std::min(patient, quiet_from_));
      continue;
    }
    lane.booting = true;
    lane.due.reset();
    return &lane;
  }
  return nullptr;
}

Result<std::string> WarmPool::NewFolder(const std::string& root) {
  std::unique_ptr<WarmFolder>& folder = folders_[root];
  if (!folder) {
    GANTRY_TRY(folder, WarmFolder::Make(root));
    const std::lock_guard lock(mutex_);
    paths_.push_back(folder->path());
  }
  return folder->NewEntry();
}

Result<WarmEntry> WarmPool::Boot(const Lane& lane) {
  GANTRY_TRY(const std::string folder, NewFolder(lane.handler.options.root));
  auto booted = maker_.boot(lane.handler, folder, [this](const auto& process) {
    const std::lock_guard lock(mutex_);
    booting_ = process;
    if (leaving_) {
      IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
    }
  });
  if (!booted) {
    IgnoreError(RemoveTree(folder), "it goes with the others'");
  }
  return booted;
}

void WarmPool::Fill(Lane& lane) {
  auto booted = Boot(lane);
  Enter(lane, std::move(booted));
}

void WarmPool::Enter(Lane& lane, Result<WarmEntry> booted) {
  UniqueFd pidfd;
  if (booted) {
    // Of one that has ended since there is none.
    pidfd = OpenPidfd(booted->process->pid()).value_or(UniqueFd());
  }
  std::optional<std::chrono::milliseconds> pause;
  {
    const std::lock_guard lock(mutex_);
    lane.booting = false;
    booting_.reset();
    if (booted) {
      lane.ready.push_back({std::move(*booted), std::move(pidfd), Clock::now()});
    } else if (!leaving_) {
      pause = Postpone(lane);
    }
  }
  changed_.notify_all();
  if (pause) {
    context_.Log(LogLevel::kWarning,
                 Format("handler '{}': no sandbox could be booted beforehand, next in {} ms: {}",
                        lane.handler.name, pause->count(), booted.error().message));
  }
}

void WarmPool::Wait(std::optional<Clock::time_point> until) {
  std::vector<pollfd> waited = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  {
    const std::lock_guard lock(mutex_);
    for (const Lane& lane : lanes_) {
      for (const Ready& one : lane.ready) {
        if (one.pidfd) {
          waited.push_back({.fd = one.pidfd.get(), .events = POLLIN, .revents = 0});
        }
      }
    }
  }
  // Of one that is taken meanwhile the number may be another file's: then it is looked once too
  // often.
  poll(waited.data(), waited.size(), until ? PollTimeout(*until) : -1);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
}

}  // namespace gantry::gvisor
