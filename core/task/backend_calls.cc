// SPDX-License-Identifier: Apache-2.0
//
// The workers of each backend, and which calls are under way on them: by group, so that one that
// hangs can be named to the calls that wait for it and to those that are refused because of it.
#include "core/task/backend_calls.h"

#include <algorithm>
#include <array>

#include "core/async/loop.h"
#include "core/async/worker_pool.h"
#include "core/backend/context.h"
#include "core/config/config.h"
#include "core/log/log.h"
#include "core/os/process.h"
#include "core/task/pool_limits.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

/// Who waits for a client costs no CPU time.
constexpr int kStreamThreads = 4;

int64_t MillisSince(Deadline since) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(backend::CallDeadline::Clock::now() -
                                                               since)
      .count();
}

}  // namespace

async::WorkerPool& BackendCalls::PoolOf(const std::string& backend) {
  if (backend.empty()) {
    return parts_.services.pool;
  }
  std::unique_ptr<async::WorkerPool>& pool = pools_[backend];
  if (!pool) {
    async::PoolLimits limits = PoolLimitsOf(parts_.config.limits, parts_.overdue_after);
    // Clamped here, so that what is added leaves as many to the others.
    limits.threads_of_one = std::clamp(limits.threads_of_one, 1, std::max(limits.threads - 1, 1));
    limits.more_for_short = 1;
    limits.more_for_watches = 1;
    limits.threads += limits.more_for_short + limits.more_for_watches;
    limits.most_threads += limits.more_for_short + limits.more_for_watches;
    limits.on_lost = [this, backend](const std::string& what) {
      LogError({{"backend", backend}}, "a worker is lost in {}: {} of backend '{}' are now", what,
               LostOf(backend), backend);
      parts_.counters.Add(backend + ".workers_lost", 1);
    };
    pool = std::make_unique<async::WorkerPool>(parts_.services.loop, std::move(limits));
  }
  return *pool;
}

size_t BackendCalls::LostOf(const std::string& backend) const {
  const auto found = pools_.find(backend);
  return found == pools_.end() ? 0 : found->second->counts().lost;
}

size_t BackendCalls::lost() const {
  size_t sum = parts_.services.pool.counts().lost + (streams_ ? streams_->counts().lost : 0);
  for (const auto& [backend, pool] : pools_) {
    sum += pool->counts().lost;
  }
  return sum;
}

std::map<std::string, async::WorkerPool::Counts> BackendCalls::PoolsOfBackends() const {
  std::map<std::string, async::WorkerPool::Counts> all;
  for (const auto& [backend, pool] : pools_) {
    all.emplace(backend, pool->counts());
  }
  return all;
}

async::WorkerPool::Counts BackendCalls::StreamCounts() const {
  return streams_ ? streams_->counts() : async::WorkerPool::Counts();
}

async::WorkerPool& BackendCalls::StreamPool() {
  if (!streams_) {
    async::PoolLimits limits = PoolLimitsOf(parts_.config.limits, parts_.overdue_after);
    limits.threads *= kStreamThreads;
    limits.most_threads *= kStreamThreads;
    limits.on_lost = [](const std::string& what) {
      LogError("a worker for streams is lost in {}", what);
    };
    streams_ = std::make_unique<async::WorkerPool>(parts_.services.loop, limits);
  }
  return *streams_;
}

size_t BackendCalls::under_way() const {
  const async::WorkerPool::Counts streams = StreamCounts();
  return under_way_ + streams.queued + streams.running;
}

template <class T>
void BackendCalls::Remove(ByGroup<T>& all, const std::string& address,
                          typename std::list<T*>::iterator here) {
  const auto found = all.find(address);
  found->second.erase(here);
  if (found->second.empty()) {
    all.erase(found);
  }
}

BackendCalls::Name BackendCalls::NameOf(const SandboxEntry& entry, std::string_view verb,
                                        std::string_view object) {
  return {entry.backend_name,
          entry.address,
          Format("{} '{}'", verb, object),
          entry.account,
          std::string(verb),
          std::string(object),
          entry.ns};
}

trace::OpenStep BackendCalls::BeginStep(const Name& name) const {
  // Of recoveries there is a step for each instance; of two thousand they would be all there is.
  constexpr std::array<std::string_view, 6> kQuestions = {"measure",   "list processes of",
                                                          "ask about", "ask the platform of",
                                                          "recover",   "recover sandbox"};
  if (std::ranges::contains(kQuestions, name.verb)) {
    return {};
  }
  const std::string_view whose = name.whose;
  const size_t slash = whose.find('/');
  const trace::Subject subject{
      name.ns, whose.substr(0, slash),
      slash == std::string_view::npos ? std::string_view() : whose.substr(slash + 1)};
  return parts_.recorder.Begin(trace::Kind::kBackend, subject, name.verb);
}

async::CallTerms BackendCalls::TermsOf(const Name& name, Deadline deadline,
                                       async::Refusable refusable, async::CallKind kind) const {
  async::CallTerms terms;
  terms.refusable = refusable;
  terms.kind = kind;
  terms.what = name.what;
  if (deadline != backend::CallDeadline::kNone) {
    terms.hangs_at = deadline + parts_.overdue_after;
  }
  return terms;
}

async::Duration BackendCalls::UntilOverdue(Deadline deadline) const {
  return std::max(deadline - backend::CallDeadline::Clock::now(), async::Duration::zero()) +
         parts_.overdue_after;
}

const BackendCalls::Ticket* BackendCalls::FindOverdue(const std::string& address) const {
  const auto found = overdue_.find(address);
  return found == overdue_.end() ? nullptr : found->second.front();
}

BackendCalls::ChildCheck::ChildCheck(const std::string& backend, const std::string& what)
    : backend_(backend), what_(what) {
  // Those of a thread that has ended are another's then: nobody is to blame here.
  os::ReapLeftChildren();
}

BackendCalls::ChildCheck::~ChildCheck() {
  const os::LeftChildren left = os::ReapLeftChildren();
  for (const pid_t pid : left.reaped) {
    LogError({{"backend", backend_}}, "backend '{}' left a child, process {}, unreaped in {}",
             backend_, pid, what_);
  }
  if (left.running) {
    LogError({{"backend", backend_}},
             "backend '{}' left a child running in {}: it has to use Spawn", backend_, what_);
  }
}

BackendCalls::Ticket::Ticket(BackendCalls& calls, Name name, Deadline deadline)
    : calls_(calls), name_(std::move(name)), since_(backend::CallDeadline::Clock::now()) {
  ++calls_.under_way_;
  if (deadline != backend::CallDeadline::kNone) {
    timer_ = calls_.parts_.services.loop.After(calls_.UntilOverdue(deadline), [this] { Expire(); });
  }
}

BackendCalls::Ticket::~Ticket() {
  calls_.parts_.services.loop.Cancel(timer_);
  --calls_.under_way_;
  if (overdue_) {
    Remove(calls_.overdue_, name_.address, here_);
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
  std::list<Ticket*>& all = calls_.overdue_[name_.address];
  here_ = all.insert(all.end(), this);
  LogError({{"backend", name_.backend}}, "{}", Complaint());
  const auto watches = calls_.watches_.find(name_.address);
  if (watches == calls_.watches_.end()) {
    return;
  }
  for (Watch* const watch : watches->second) {
    watch->OnOverdue(*this);
  }
}

BackendCalls::Watch::Watch(BackendCalls& calls, const rpc::CallContext& call,
                           std::chrono::nanoseconds limit)
    : calls_(calls), call_(call) {
  std::list<Watch*>& all = calls_.watches_[call.address];
  here_ = all.insert(all.end(), this);
  if (limit != kNoLimit || call.timeout.count() > 0) {
    due_ = DeadlineOf(call, limit) + calls.parts_.overdue_after;
    if (const Ticket* const ticket = calls.FindOverdue(call.address)) {
      OnOverdue(*ticket);
    }
  }
}

BackendCalls::Watch::~Watch() {
  calls_.parts_.services.loop.Cancel(timer_);
  Remove(calls_.watches_, call_.address, here_);
}

void BackendCalls::Watch::OnOverdue(const Ticket& ticket) {
  if (due_ == backend::CallDeadline::kNone) {
    return;
  }
  const auto left = due_ - backend::CallDeadline::Clock::now();
  if (left <= async::Duration::zero()) {
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
    const Error error = Fail(Code::kDeadlineExceeded, "{}", ticket.Complaint()).error();
    const std::string_view id = call_.account ? call_.account->name : std::string_view();
    calls_.parts_.recorder.Note(trace::Kind::kCall, {call_.ns, id, {}}, call_.method + " given up",
                                error.code, error.message);
    call_.answer_early(error);
  }
}

}  // namespace gantry::task
