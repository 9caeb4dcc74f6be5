// SPDX-License-Identifier: Apache-2.0
//
// Two kinds of calls that may not be in a sentry at the same time: those that start a process,
// and those for which all processes of the sandbox come to a stop, if only for a moment. A
// process that is started just when the last of the others has stopped ends the sentry and all
// that is in it: "panic: sync: WaitGroup is reused before previous Wait has returned", with
// four of each at once within two seconds, in 20240729 and in 2026-09.
// DestroySubcontainer is of neither kind: the sentry itself makes it and starts wait for each
// other. Source: pkg/sentry/kernel/kernel.go (Pause), task_start.go (Start),
// runsc/boot/loader.go (signalAllProcesses).
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/sentry/durable_call.h"

namespace gantry::gvisor {

enum class CallKind {
  /// ExecuteAsync.
  kExec,
  /// StartSubcontainer: one at a time, as what has failed is destroyed before the next one comes.
  kStart,
  /// Pause, Checkpoint.
  kStandstill,
  /// Signal to all of a container: a standstill, too; one at a time, as it is stored under one
  /// name.
  kSignalAll,
};

/// Of one sentry. Thread: any.
class CallSlots {
 public:
  /// Over when it is destroyed; not later than its `CallSlots`.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), kind_(other.kind_) {}

    Slot& operator=(Slot&& other) = delete;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot();

   private:
    friend CallSlots;

    Slot(CallSlots& slots, CallKind kind) : slots_(&slots), kind_(kind) {}

    /// Null: it is somebody else's.
    CallSlots* slots_;
    CallKind kind_;
  };

  /// Of calls that were left: a sentry that answers none is asked for no more than that. What
  /// kills a container is not counted, and there is one of it.
  static constexpr size_t kMaxLeft = 32;

  /// To be had before a call is sent, and kept until it is answered. Starts, of both kinds, have
  /// theirs side by side, and so do standstills. A start comes behind each standstill that waits:
  /// what kills a container must not wait for ever new execs, nor for the end of a long
  /// checkpoint and for who waits for that. Errors: kDeadline. Blocks: up to `deadline`.
  urpc::Outcome<Slot> Take(CallKind kind, Deadline deadline);

  /// Its call, which has been sent, was not answered in time and may take effect yet: it is
  /// waited for as if it were answered in its slot, until the sentry has gone, and settled then;
  /// that of `starts`, a container, is given to who has the next slot of its kind.
  void Leave(Slot slot, DurableCall call, std::string starts = {});

  /// A start that was left, and has been answered or has gone.
  struct LateStart {
    std::string container;
    DurableCall call;
  };

  /// Of the start before. For who has a slot to start.
  std::optional<LateStart> TakeLateStart();

  /// The sentry ends: of what was left nothing is waited for any more.
  void Clear();

 private:
  struct Left {
    Slot slot;
    DurableCall call;
    std::string starts;
  };

  bool AreUnderWay(CallKind one, CallKind other) const GANTRY_REQUIRES(mutex_);
  bool IsFree(CallKind kind) const GANTRY_REQUIRES(mutex_);
  /// Those whose calls have been answered. For its caller to settle without the lock.
  std::list<Left> TakeAnswered() GANTRY_REQUIRES(mutex_);
  void End(CallKind kind);

  Mutex mutex_;
  std::condition_variable changed_;
  std::array<int, 4> under_way_ GANTRY_GUARDED_BY(mutex_){};
  int standstills_waiting_ GANTRY_GUARDED_BY(mutex_) = 0;
  std::list<Left> left_ GANTRY_GUARDED_BY(mutex_);
  std::optional<LateStart> late_start_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::gvisor
