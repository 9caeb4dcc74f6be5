// SPDX-License-Identifier: Apache-2.0
#include "core/async/worker_lanes.h"

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

size_t WorkerLanes::Lane::queued() const {
  size_t sum = 0;
  for (const auto& queue : queues) {
    sum += queue.size();
  }
  return sum;
}

bool WorkerLanes::Lane::CanTake(size_t kind) const {
  for (size_t i = kind; i < kKinds; ++i) {
    if (UpTo(running, i) >= most[i]) {
      return false;
    }
  }
  return true;
}

/// So many as `Dequeue` would take, one after the other: the last kind first.
size_t WorkerLanes::Lane::takeable() const {
  size_t taken = 0;
  size_t room = SIZE_MAX;
  for (size_t kind = kKinds; kind-- > 0;) {
    room = std::min(room, Rest(most[kind], UpTo(running, kind)));
    const size_t now = std::min(queues[kind].size(), room);
    taken += now;
    room -= now;
  }
  return taken;
}

bool WorkerLanes::Lane::HangsFor(size_t kind) const {
  for (size_t i = kind; i < kKinds; ++i) {
    if (UpTo(lost, i) >= most[i]) {
      return true;
    }
  }
  return false;
}

bool WorkerLanes::Lane::IsEmpty() const { return UpTo(running, kKinds - 1) == 0 && queued() == 0; }

WorkerLanes::WorkerLanes(const PoolLimits& limits) : limits_(limits) {
  const int threads = std::max(limits.threads, 1);
  const int one = std::clamp(limits.threads_of_one, 1, std::max(threads - 1, 1));
  most_of_one_[0] = static_cast<size_t>(one);
  most_of_one_[1] = most_of_one_[0] + static_cast<size_t>(limits.more_for_short);
  most_of_one_[2] = most_of_one_[1] + static_cast<size_t>(limits.more_for_watches);
}

const WorkerLanes::Lane* WorkerLanes::Find(const PoolJob& job) const {
  const auto found = lanes_.find(job.account.get());
  return found == lanes_.end() ? nullptr : &found->second;
}

Status WorkerLanes::CheckRoom(const PoolJob& job) const {
  if (job.terms.refusable == Refusable::kNo) {
    return {};
  }
  const Lane* const lane = job.account ? Find(job) : nullptr;
  if (lane != nullptr && lane->HangsFor(IndexOf(job.terms.kind))) {
    return std::unexpected(Refusal(job));
  }
  if (job.terms.refusable == Refusable::kUnlessHung) {
    return {};
  }
  if (queued_ + running_ - lost_ >= static_cast<size_t>(limits_.threads) + limits_.queued) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls wait already (limits.max_queued_calls)", queued_);
  }
  if (lane != nullptr && lane->queued() >= limits_.queued_of_one) {
    return Fail(Code::kResourceExhausted,
                "worker call: {} calls of sandbox '{}' wait already "
                "(limits.max_queued_calls_per_sandbox)",
                lane->queued(), job.account->name);
  }
  return {};
}

Error WorkerLanes::Refusal(const PoolJob& job) const {
  const Lane* const lane = Find(job);
  return Error{Code::kUnavailable,
               0,
               Format("worker call: {} calls of sandbox '{}' hang, {} among them; end it, or "
                      "restart the engine (gantryctl restart)",
                      lane == nullptr ? 0 : UpTo(lane->lost, kKinds - 1), job.account->name,
                      lane == nullptr || lane->hung.empty() ? "one" : lane->hung),
               {}};
}

void WorkerLanes::TakeTurn(const Account* account, Lane& lane) {
  if (!lane.waits && lane.takeable() > 0) {
    lane.waits = true;
    turns_.push_back(account);
  }
}

void WorkerLanes::Enqueue(PoolJob& job) {
  const Account* const account = job.account.get();
  Lane& lane = lanes_[account];
  if (account == nullptr) {
    lane.most.fill(static_cast<size_t>(std::max({limits_.threads, limits_.most_threads, 1})));
  } else {
    lane.most = most_of_one_;
  }
  takeable_ -= lane.takeable();
  lane.queues[IndexOf(job.terms.kind)].push_back(&job);
  takeable_ += lane.takeable();
  ++queued_;
  TakeTurn(account, lane);
}

PoolJob& WorkerLanes::Dequeue() {
  const Account* const account = turns_.front();
  turns_.pop_front();
  Lane& lane = lanes_.at(account);
  lane.waits = false;
  takeable_ -= lane.takeable();
  size_t kind = kKinds - 1;
  while (kind > 0 && (lane.queues[kind].empty() || !lane.CanTake(kind))) {
    --kind;
  }
  PoolJob& job = *lane.queues[kind].front();
  lane.queues[kind].pop_front();
  ++lane.running[kind];
  takeable_ += lane.takeable();
  --queued_;
  ++running_;
  TakeTurn(account, lane);
  return job;
}

void WorkerLanes::Done(const Ran& ran) {
  const auto found = lanes_.find(ran.account);
  Lane& lane = found->second;
  const size_t kind = IndexOf(ran.kind);
  --running_;
  takeable_ -= lane.takeable();
  --lane.running[kind];
  takeable_ += lane.takeable();
  if (ran.lost) {
    --lane.lost[kind];
    --lost_;
  }
  TakeTurn(ran.account, lane);
  if (lane.IsEmpty()) {
    lanes_.erase(found);
  }
}

std::vector<PoolJob*> WorkerLanes::MarkLost(PoolJob& job) {
  Lane& lane = lanes_.at(job.account.get());
  job.lost = true;
  ++lane.lost[IndexOf(job.terms.kind)];
  ++lost_;
  lane.hung = job.terms.what;
  std::vector<PoolJob*> refused;
  for (size_t kind = 0; kind < kKinds && job.account; ++kind) {
    if (!lane.HangsFor(kind)) {
      continue;
    }
    // None of these could be taken: so nothing else changes.
    std::erase_if(lane.queues[kind], [&](PoolJob* waiting) {
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

std::vector<PoolJob*> WorkerLanes::Clear() {
  std::vector<PoolJob*> waiting;
  for (auto& [account, lane] : lanes_) {
    for (auto& queue : lane.queues) {
      waiting.insert(waiting.end(), queue.begin(), queue.end());
      queue.clear();
    }
    lane.waits = false;
  }
  turns_.clear();
  queued_ = 0;
  takeable_ = 0;
  return waiting;
}

}  // namespace gantry::async
