// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/call_slots.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gantry::gvisor {
namespace {

/// Between two looks at calls that were not answered in time.
constexpr std::chrono::milliseconds kLookAgain{20};

std::unexpected<urpc::Failure> TooLate(const char* text) {
  return std::unexpected(urpc::Failure{.cause = urpc::Cause::kDeadline,
                                       .code = Code::kDeadlineExceeded,
                                       .method = {},
                                       .text = text,
                                       .sys_errno = 0});
}

bool IsStart(CallKind kind) { return kind == CallKind::kExec || kind == CallKind::kStart; }

}  // namespace

CallSlots::Slot::~Slot() {
  if (slots_ != nullptr) {
    slots_->End(kind_);
  }
}

urpc::Outcome<CallSlots::Slot> CallSlots::Take(CallKind kind, Deadline deadline) {
  std::list<Left> answered;
  MutexLock lock(mutex_);
  if (!IsStart(kind)) {
    ++standstills_waiting_;
  }
  bool in_time = true;
  while (true) {
    if (answered = TakeAnswered(); !answered.empty()) {
      lock.Unlock();
      for (Left& one : answered) {
        one.call.Settle();
      }
      answered.clear();
      lock.Lock();
      continue;
    }
    if (IsFree(kind) || !in_time) {
      break;
    }
    const auto now = std::chrono::steady_clock::now();
    in_time = now < deadline;
    changed_.wait_until(lock.native(),
                        left_.empty() ? deadline : std::min(deadline, now + kLookAgain));
  }
  if (!IsStart(kind)) {
    --standstills_waiting_;
  }
  if (!IsFree(kind)) {
    changed_.notify_all();
    return TooLate(IsStart(kind)
                       ? "the sandbox is being stopped, saved or signalled as a whole, or another "
                         "container started, and the sentry has not come to the end of that in time"
                       : "the sentry has not come to the end of another start, or of a signal to "
                         "all, in time");
  }
  ++under_way_.at(static_cast<size_t>(kind));
  return Slot(*this, kind);
}

void CallSlots::Leave(Slot slot, DurableCall call, std::string starts) {
  const MutexLock lock(mutex_);
  left_.push_back({std::move(slot), std::move(call), std::move(starts)});
  // Who waits without a look at what is left begins to look.
  changed_.notify_all();
}

std::optional<CallSlots::LateStart> CallSlots::TakeLateStart() {
  const MutexLock lock(mutex_);
  return std::exchange(late_start_, std::nullopt);
}

void CallSlots::Clear() {
  MutexLock lock(mutex_);
  std::list<Left> left = std::exchange(left_, {});
  late_start_.reset();
  lock.Unlock();
  for (Left& one : left) {
    one.call.Settle();
  }
}

bool CallSlots::AreUnderWay(CallKind one, CallKind other) const {
  return under_way_.at(static_cast<size_t>(one)) + under_way_.at(static_cast<size_t>(other)) > 0;
}

bool CallSlots::IsFree(CallKind kind) const {
  const bool waits = IsStart(kind) ? standstills_waiting_ > 0 ||
                                         AreUnderWay(CallKind::kStandstill, CallKind::kSignalAll)
                                   : AreUnderWay(CallKind::kExec, CallKind::kStart);
  const bool alone = kind == CallKind::kStart || kind == CallKind::kSignalAll;
  return !waits && (alone ? !AreUnderWay(kind, kind) : left_.size() < kMaxLeft);
}

std::list<CallSlots::Left> CallSlots::TakeAnswered() {
  std::list<Left> answered;
  for (auto next = left_.begin(); next != left_.end();) {
    const auto one = next++;
    if (one->call.IsReadable()) {
      if (!one->starts.empty()) {
        late_start_.emplace(std::move(one->starts), std::move(one->call));
      }
      answered.splice(answered.end(), left_, one);
    }
  }
  return answered;
}

void CallSlots::End(CallKind kind) {
  const MutexLock lock(mutex_);
  --under_way_.at(static_cast<size_t>(kind));
  changed_.notify_all();
}

}  // namespace gantry::gvisor
