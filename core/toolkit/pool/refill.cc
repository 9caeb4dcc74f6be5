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
#include <gantry/toolkit/pool/process_pool.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/toolkit/pool/pool_folder.h"

namespace gantry {

Status HandOver(const PooledProcess& one) { return ForgetProcess(one.folder); }

void Discard(const PooledProcess& one) {
  constexpr std::chrono::seconds kLimit{1};
  IgnoreError(one.process->Signal(SIGKILL), "it may have ended by itself");
  IgnoreError(one.process->Wait(kLimit), "it has been killed");
  IgnoreError(RemoveTree(one.folder), "it goes with the others'");
}

void ProcessPool::Run() {
  while (!IsLeaving()) {
    Sort();
    std::optional<Clock::time_point> look_again;
    if (AccountQueue* const queue = Next(look_again)) {
      Fill(*queue);
    } else if (!IsLeaving()) {
      Wait(look_again);
    }
  }
  for (AccountQueue& queue : queues_) {
    for (const Ready& one : TakeOut(queue, {})) {
      Discard(*one.held);
    }
  }
}

std::chrono::milliseconds ProcessPool::Postpone(AccountQueue& queue) {
  constexpr uint32_t kMostDoubled = 20;
  const auto pause = std::min(times_.longest_pause,
                              times_.first_pause * (1U << std::min(queue.failures, kMostDoubled)));
  ++queue.failures;
  ++queue.failed;
  queue.not_before = Clock::now() + pause;
  return pause;
}

/// `build`: as it is now.
std::vector<ProcessPool::Ready> ProcessPool::TakeOut(AccountQueue& queue,
                                                     const std::string& build) {
  const std::lock_guard lock(mutex_);
  std::vector<Ready> out;
  for (auto one = queue.ready.begin(); one != queue.ready.end();) {
    const bool ended = one->HasEnded();
    if (!ended && one->held->build == build) {
      ++one;
      continue;
    }
    if (ended && !leaving_) {
      if (Clock::now() - one->since >= times_.long_life) {
        queue.failures = 0;
      }
      Postpone(queue);
    }
    out.push_back(std::move(*one));
    one = queue.ready.erase(one);
  }
  return out;
}

void ProcessPool::Sort() {
  for (AccountQueue& queue : queues_) {
    const std::string build = maker_.build(queue.number).value_or("");
    for (const Ready& one : TakeOut(queue, build)) {
      const std::string whose = Format("handler '{}': a pre-booted sandbox ", queue.handler.name);
      if (IsLeaving()) {
        // It was ended for that.
      } else if (one.HasEnded()) {
        context_.Log(LogLevel::kWarning, whose + "has ended by itself: " + one.held->LastWords());
      } else {
        context_.Log(LogLevel::kInfo, whose + "is of another build than new ones: ended");
      }
      Discard(*one.held);
      changed_.notify_all();
    }
  }
}

ProcessPool::AccountQueue* ProcessPool::Next(std::optional<Clock::time_point>& look_again) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto at = [&](Clock::time_point then) {
    look_again = std::min(look_again.value_or(then), then);
  };
  for (AccountQueue& queue : queues_) {
    if (leaving_ || queue.ready.size() >= queue.handler.wanted) {
      queue.due.reset();
      continue;
    }
    if (now < queue.not_before) {
      queue.due.reset();
      at(queue.not_before);
      continue;
    }
    queue.due = queue.due.value_or(now);
    const auto patient = *queue.due + times_.patience;
    if (now < patient && (starting_ > 0 || now < quiet_from_)) {
      at(starting_ > 0 ? patient : std::min(patient, quiet_from_));
      continue;
    }
    queue.making = true;
    queue.due.reset();
    return &queue;
  }
  return nullptr;
}

Result<std::string> ProcessPool::NewFolder(const std::string& root) {
  std::unique_ptr<PoolFolder>& folder = folders_[root];
  if (!folder) {
    GANTRY_TRY(folder, PoolFolder::Make(root));
    const std::lock_guard lock(mutex_);
    paths_.push_back(folder->path());
  }
  return folder->NewEntry();
}

/// While it is being made nobody else knows of it.
void ProcessPool::HaveSpawned(const std::string& folder,
                              const std::shared_ptr<HostProcess>& process) {
  {
    const std::lock_guard lock(mutex_);
    making_ = process;
    if (leaving_) {
      IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
    }
  }
  IgnoreError(NoteProcess(folder, *process), "it is of use only if all is killed at once");
}

Result<std::unique_ptr<PooledProcess>> ProcessPool::Make(const AccountQueue& queue) {
  GANTRY_TRY(const std::string folder, NewFolder(queue.handler.root));
  auto made =
      maker_.make(queue.number, folder, [&](const auto& process) { HaveSpawned(folder, process); });
  if (!made) {
    IgnoreError(RemoveTree(folder), "it goes with the others'");
  }
  return made;
}

void ProcessPool::Fill(AccountQueue& queue) {
  auto made = Make(queue);
  Enter(queue, std::move(made));
}

void ProcessPool::Enter(AccountQueue& queue, Result<std::unique_ptr<PooledProcess>> made) {
  UniqueFd pidfd;
  if (made) {
    // Of one that has ended since there is none.
    pidfd = OpenPidfd((*made)->process->pid()).value_or(UniqueFd());
  }
  std::optional<std::chrono::milliseconds> pause;
  {
    const std::lock_guard lock(mutex_);
    queue.making = false;
    making_.reset();
    if (made) {
      queue.ready.push_back({std::move(*made), std::move(pidfd), Clock::now()});
    } else if (!leaving_) {
      pause = Postpone(queue);
    }
  }
  changed_.notify_all();
  if (pause) {
    context_.Log(LogLevel::kWarning,
                 Format("handler '{}': no sandbox could be booted beforehand, next in {} ms: {}",
                        queue.handler.name, pause->count(), made.error().message));
  }
}

void ProcessPool::Wait(std::optional<Clock::time_point> until) {
  std::vector<pollfd> waited = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  {
    const std::lock_guard lock(mutex_);
    for (const AccountQueue& queue : queues_) {
      for (const Ready& one : queue.ready) {
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

}  // namespace gantry
