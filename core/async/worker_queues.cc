// SPDX-License-Identifier: Apache-2.0
//
// Which of the waiting calls is next. Sandboxes that have a call to make stand in line; the one
// in front gives one call and, if it has more, goes to the end. Within a sandbox the kind with
// the most threads allowed (watches, then short calls) goes first, since what it may use beyond
// the others nobody else can. `takeable_` is the sum of what could run now; it is corrected on
// each change by what the sandbox counted before and counts after.
#include "core/async/worker_queues.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <gantry/format.h>

namespace gantry::async {

using internal::PoolJob;

namespace {

size_t IndexOf(CallKind kind) { return static_cast<size_t>(kind); }

/// Of a kind and those before it.
template <size_t N>
size_t UpTo(const std::array<size_t, N>& counts, size_t kind) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(kind) + 1,
                         size_t{0});
}

size_t Rest(size_t from, size_t taken) { return from - std::min(from, taken); }

}  // namespace

size_t WorkerQueues::AccountQueue::queued() const {
  size_t sum = 0;
  for (const auto& of_kind : waiting) {
    sum += of_kind.size();
  }
  return sum;
}

bool WorkerQueues::AccountQueue::CanTake(size_t kind) const {
  for (size_t i = kind; i < kKinds; ++i) {
    if (UpTo(running, i) >= most[i]) {
      return false;
    }
  }
  return true;
}

/// So many as `Dequeue` would take, one after the other: the last kind first.
size_t WorkerQueues::AccountQueue::takeable() const {
  size_t taken = 0;
  size_t room = SIZE_MAX;
  for (size_t kind = kKinds; kind-- > 0;) {
    room = std::min(room, Rest(most[kind], UpTo(running, kind)));
    const size_t now = std::min(waiting[kind].size(), room);
    taken += now;
    room -= now;
  }
  return taken;
}

bool WorkerQueues::AccountQueue::HangsFor(size_t kind) const {
  for (size_t i = kind; i < kKinds; ++i) {
    if (UpTo(lost, i) >= most[i]) {
      return true;
    }
  }
  return false;
}

bool WorkerQueues::AccountQueue::IsEmpty() const {
  return UpTo(running, kKinds - 1) == 0 && queued() == 0;
}

WorkerQueues::WorkerQueues(const PoolLimits& limits) : limits_(limits) {
  const int threads = std::max(limits.threads, 1);
  const int one = std::clamp(limits.threads_of_one, 1, std::max(threads - 1, 1));
  most_of_one_[0] = static_cast<size_t>(one);
  most_of_one_[1] = most_of_one_[0] + static_cast<size_t>(limits.more_for_short);
  most_of_one_[2] = most_of_one_[1] + static_cast<size_t>(limits.more_for_watches);
}

const WorkerQueues::AccountQueue* WorkerQueues::Find(const PoolJob& job) const {
  const auto found = queues_.find(job.account.get());
  return found == queues_.end() ? nullptr : &found->second;
}

Status WorkerQueues::CheckRoom(const PoolJob& job) const {
  if (job.terms.refusable == Refusable::kNo) {
    return {};
  }
  const AccountQueue* const queue = job.account ? Find(job) : nullptr;
  if (queue != nullptr && queue->HangsFor(IndexOf(job.terms.kind))) {
    return std::unexpected(Refusal(job));
  }
  if (job.terms.refusable == Refusable::kUnlessHung) {
    return {};
  }
  if (queued_ + running_ - lost_ >= static_cast<size_t>(limits_.threads) + limits_.queued) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls wait already (limits.max_queued_calls)", queued_);
  }
  if (queue != nullptr && queue->queued() >= limits_.queued_of_one) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls of sandbox '{}' wait already "
                "(limits.max_queued_calls_per_sandbox)",
                queue->queued(), job.account->name);
  }
  return {};
}

Error WorkerQueues::Refusal(const PoolJob& job) const {
  const AccountQueue* const queue = Find(job);
  return Error{Code::kUnavailable,
               0,
               Format("worker call: {} calls of sandbox '{}' hang, {} among them; end it, or "
                      "restart the engine (gantryctl restart)",
                      queue == nullptr ? 0 : UpTo(queue->lost, kKinds - 1), job.account->name,
                      queue == nullptr || queue->hung.empty() ? "one" : queue->hung),
               {}};
}

void WorkerQueues::LineUp(const Account* account, AccountQueue& queue) {
  if (!queue.waits && queue.takeable() > 0) {
    queue.waits = true;
    ready_.push_back(account);
  }
}

void WorkerQueues::Enqueue(PoolJob& job) {
  const Account* const account = job.account.get();
  AccountQueue& queue = queues_[account];
  if (account == nullptr) {
    queue.most.fill(static_cast<size_t>(std::max({limits_.threads, limits_.most_threads, 1})));
  } else {
    queue.most = most_of_one_;
  }
  takeable_ -= queue.takeable();
  queue.waiting[IndexOf(job.terms.kind)].push_back(&job);
  takeable_ += queue.takeable();
  ++queued_;
  LineUp(account, queue);
}

PoolJob& WorkerQueues::Dequeue() {
  const Account* const account = ready_.front();
  ready_.pop_front();
  AccountQueue& queue = queues_.at(account);
  queue.waits = false;
  takeable_ -= queue.takeable();
  size_t kind = kKinds - 1;
  while (kind > 0 && (queue.waiting[kind].empty() || !queue.CanTake(kind))) {
    --kind;
  }
  PoolJob& job = *queue.waiting[kind].front();
  queue.waiting[kind].pop_front();
  ++queue.running[kind];
  takeable_ += queue.takeable();
  --queued_;
  ++running_;
  LineUp(account, queue);
  return job;
}

void WorkerQueues::Done(const Ran& ran) {
  const auto found = queues_.find(ran.account);
  AccountQueue& queue = found->second;
  const size_t kind = IndexOf(ran.kind);
  --running_;
  takeable_ -= queue.takeable();
  --queue.running[kind];
  takeable_ += queue.takeable();
  if (ran.lost) {
    --queue.lost[kind];
    --lost_;
  }
  LineUp(ran.account, queue);
  if (queue.IsEmpty()) {
    queues_.erase(found);
  }
}

std::vector<PoolJob*> WorkerQueues::MarkLost(PoolJob& job) {
  AccountQueue& queue = queues_.at(job.account.get());
  job.lost = true;
  ++queue.lost[IndexOf(job.terms.kind)];
  ++lost_;
  queue.hung = job.terms.what;
  std::vector<PoolJob*> refused;
  for (size_t kind = 0; kind < kKinds && job.account; ++kind) {
    if (!queue.HangsFor(kind)) {
      continue;
    }
    // None of these could be taken: so nothing else changes.
    std::erase_if(queue.waiting[kind], [&](PoolJob* waiting) {
      const bool may = waiting->terms.refusable != Refusable::kNo;
      if (may) {
        refused.push_back(waiting);
      }
      return may;
    });
  }
  queued_ -= refused.size();
  return refused;
}

std::vector<PoolJob*> WorkerQueues::Clear() {
  std::vector<PoolJob*> waiting;
  for (auto& [account, queue] : queues_) {
    for (auto& of_kind : queue.waiting) {
      waiting.insert(waiting.end(), of_kind.begin(), of_kind.end());
      of_kind.clear();
    }
    queue.waits = false;
  }
  ready_.clear();
  queued_ = 0;
  takeable_ = 0;
  return waiting;
}

}  // namespace gantry::async
