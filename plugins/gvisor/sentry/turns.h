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

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <gantry/deadline.h>

#include "plugins/gvisor/urpc/connection.h"

namespace gantry::gvisor {

enum class TurnKind {
  /// StartSubcontainer, ExecuteAsync.
  kStart,
  /// Pause, Checkpoint, Signal to all of a container.
  kStandstill,
};

/// Of one sentry. Thread: any.
class Turns {
 public:
  /// Over when it is destroyed; not later than its `Turns`.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), kind_(other.kind_) {}

    Turn& operator=(Turn&& other) = delete;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    friend Turns;

    Turn(Turns& turns, TurnKind kind) : turns_(&turns), kind_(kind) {}

    /// Null: it is somebody else's.
    Turns* turns_;
    TurnKind kind_;
  };

  /// To be had before a call is sent, and kept until it is answered. Those of one kind have
  /// theirs side by side. A start comes behind each standstill that waits: what kills a
  /// container must not wait for ever new execs, nor for the end of a long checkpoint and for
  /// who waits for that. Errors: kDeadline. Blocks: up to `deadline`.
  urpc::Outcome<Turn> Take(TurnKind kind, Deadline deadline);

  /// Its call, which has been sent on `call`, was not answered in time and may take effect yet:
  /// the other kind waits until it is, or the sentry has gone. `call` is kept until then, and
  /// the next turn is taken.
  void Leave(Turn turn, std::shared_ptr<urpc::Connection> call);

  /// Of what was left nothing is waited for any more.
  void Clear();

 private:
  struct Left {
    Turn turn;
    std::shared_ptr<urpc::Connection> call;
  };

  bool IsFree(TurnKind kind) const;
  /// Those whose calls have been answered. For its caller to destroy without the lock.
  std::list<Left> TakeAnswered();
  void End(TurnKind kind);

  /// Guards what follows.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<TurnKind, int> under_way_;
  int standstills_waiting_ = 0;
  std::list<Left> left_;
};

}  // namespace gantry::gvisor
