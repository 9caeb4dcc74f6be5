// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/turns.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gantry::gvisor {
namespace {

/// Between two looks at calls that were not answered in time.
constexpr std::chrono::milliseconds kLookAgain{20};

std::unexpected<urpc::Failure> TooLate(TurnKind kind) {
  const bool starts = kind == TurnKind::kStart;
  return std::unexpected(urpc::Failure{
      .cause = urpc::Cause::kDeadline,
      .code = Code::kDeadlineExceeded,
      .method = {},
      .text = starts ? "the sandbox is being stopped, saved or signalled as a whole, and the "
                       "sentry has not come to the end of that in time"
                     : "the sentry has not come to the end of another start in time",
      .sys_errno = 0});
}

}  // namespace

Turns::Turn::~Turn() {
  if (turns_ != nullptr) {
    turns_->End(kind_);
  }
}

urpc::Outcome<Turns::Turn> Turns::Take(TurnKind kind, Deadline deadline) {
  std::list<Left> answered;
  std::unique_lock lock(mutex_);
  if (kind == TurnKind::kStandstill) {
    ++standstills_waiting_;
  }
  bool in_time = true;
  while (true) {
    if (answered = TakeAnswered(); !answered.empty()) {
      lock.unlock();
      answered.clear();
      lock.lock();
      continue;
    }
    if (IsFree(kind) || !in_time) {
      break;
    }
    const auto now = std::chrono::steady_clock::now();
    in_time = now < deadline;
    changed_.wait_until(lock, left_.empty() ? deadline : std::min(deadline, now + kLookAgain));
  }
  if (kind == TurnKind::kStandstill) {
    --standstills_waiting_;
  }
  if (!IsFree(kind)) {
    changed_.notify_all();
    return TooLate(kind);
  }
  ++under_way_[kind];
  return Turn(*this, kind);
}

void Turns::Leave(Turn turn, std::shared_ptr<urpc::Connection> call) {
  const std::lock_guard lock(mutex_);
  left_.push_back({std::move(turn), std::move(call)});
  // Who waits without a look at what is left begins to look.
  changed_.notify_all();
}

void Turns::Clear() {
  std::list<Left> left;
  const std::lock_guard lock(mutex_);
  left.swap(left_);
}

bool Turns::IsFree(TurnKind kind) const {
  const TurnKind other = kind == TurnKind::kStart ? TurnKind::kStandstill : TurnKind::kStart;
  const auto found = under_way_.find(other);
  const bool alone = found == under_way_.end() || found->second == 0;
  return alone && (kind == TurnKind::kStandstill || standstills_waiting_ == 0);
}

std::list<Turns::Left> Turns::TakeAnswered() {
  std::list<Left> answered;
  for (auto next = left_.begin(); next != left_.end();) {
    const auto one = next++;
    if (one->call->IsReadable()) {
      answered.splice(answered.end(), left_, one);
    }
  }
  return answered;
}

void Turns::End(TurnKind kind) {
  const std::lock_guard lock(mutex_);
  --under_way_[kind];
  changed_.notify_all();
}

}  // namespace gantry::gvisor
