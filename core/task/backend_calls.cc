// SPDX-License-Identifier: Apache-2.0
#include "core/task/backend_calls.h"

#include <algorithm>

#include "core/log/log.h"
#include "core/os/process.h"

namespace gantry::task {
namespace {

int64_t MillisSince(Deadline since) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(sandbox::CallDeadline::Clock::now() -
                                                               since)
      .count();
}

}  // namespace

os::WorkerPool& BackendCalls::PoolOf(const std::string& backend) {
  if (backend.empty()) {
    return parts_.services.pool;
  }
  std::unique_ptr<os::WorkerPool>& pool = pools_[backend];
  if (!pool) {
    const config::Limits& limits = parts_.config.limits;
    pool = std::make_unique<os::WorkerPool>(parts_.services.loop, limits.worker_threads,
                                            limits.max_queued_calls);
  }
  return *pool;
}

BackendCalls::Name BackendCalls::NameOf(const SandboxEntry& entry, std::string_view verb,
                                        std::string_view object) {
  return {entry.backend_name, entry.address, Format("{} '{}'", verb, object)};
}

os::Duration BackendCalls::UntilOverdue(Deadline deadline) const {
  return std::max(deadline - sandbox::CallDeadline::Clock::now(), os::Duration::zero()) +
         parts_.overdue_after;
}

const BackendCalls::Ticket* BackendCalls::FindOverdue(const std::string& address) const {
  const auto found = std::ranges::find_if(tickets_, [&](const Ticket* ticket) {
    return ticket->overdue_ && ticket->name_.address == address;
  });
  return found == tickets_.end() ? nullptr : *found;
}

BackendCalls::StrayCheck::StrayCheck(const std::string& backend, const std::string& what)
    : backend_(backend), what_(what) {
  // Those of a thread that has ended are another's then: nobody is to blame here.
  os::ReapStrays();
}

BackendCalls::StrayCheck::~StrayCheck() {
  const os::Strays strays = os::ReapStrays();
  for (const pid_t pid : strays.reaped) {
    LogError({{"backend", backend_}}, "backend '{}' left a child, process {}, unreaped in {}",
             backend_, pid, what_);
  }
  if (strays.running) {
    LogError({{"backend", backend_}},
             "backend '{}' left a child running in {}: it has to use Spawn", backend_, what_);
  }
}

BackendCalls::Ticket::Ticket(BackendCalls& calls, Name name, Deadline deadline)
    : calls_(calls), name_(std::move(name)), since_(sandbox::CallDeadline::Clock::now()) {
  here_ = calls_.tickets_.insert(calls_.tickets_.end(), this);
  if (deadline != sandbox::CallDeadline::kNone) {
    timer_ = calls_.parts_.services.loop.After(calls_.UntilOverdue(deadline), [this] { Expire(); });
  }
}

BackendCalls::Ticket::~Ticket() {
  calls_.parts_.services.loop.Cancel(timer_);
  calls_.tickets_.erase(here_);
  if (overdue_) {
    LogWarning({{"backend", name_.backend}}, "its call '{}' has returned after {} ms", name_.what,
               MillisSince(since_));
  }
}

std::string BackendCalls::Ticket::Complaint() const {
  return Format("backend '{}' has not returned from {} after {} ms", name_.backend, name_.what,
                MillisSince(since_));
}

void BackendCalls::Ticket::Expire() {
  overdue_ = true;
  LogError({{"backend", name_.backend}}, "{}", Complaint());
  for (Watch* const watch : calls_.watches_) {
    if (watch->call_.address == name_.address) {
      watch->OnOverdue(*this);
    }
  }
}

BackendCalls::Watch::Watch(BackendCalls& calls, const rpc::CallContext& call,
                           std::chrono::nanoseconds limit)
    : calls_(calls), call_(call) {
  here_ = calls_.watches_.insert(calls_.watches_.end(), this);
  if (limit != kNoLimit || call.timeout.count() > 0) {
    due_ = DeadlineOf(call, limit) + calls.parts_.overdue_after;
    if (const Ticket* const ticket = calls.FindOverdue(call.address)) {
      OnOverdue(*ticket);
    }
  }
}

BackendCalls::Watch::~Watch() {
  calls_.parts_.services.loop.Cancel(timer_);
  calls_.watches_.erase(here_);
}

void BackendCalls::Watch::OnOverdue(const Ticket& ticket) {
  if (due_ == sandbox::CallDeadline::kNone) {
    return;
  }
  const auto left = due_ - sandbox::CallDeadline::Clock::now();
  if (left <= os::Duration::zero()) {
    Answer(ticket);
  } else if (!timer_) {
    timer_ = calls_.parts_.services.loop.After(left, [this] { Expire(); });
  }
}

void BackendCalls::Watch::Expire() {
  if (const Ticket* const ticket = calls_.FindOverdue(call_.address)) {
    Answer(*ticket);
  }
}

void BackendCalls::Watch::Answer(const Ticket& ticket) const {
  if (call_.answer_early) {
    call_.answer_early(Fail(Code::kDeadlineExceeded, "{}", ticket.Complaint()).error());
  }
}

}  // namespace gantry::task
