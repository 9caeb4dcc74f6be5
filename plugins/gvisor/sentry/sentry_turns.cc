// SPDX-License-Identifier: Apache-2.0
//
// The calls of a sentry that start a process or bring all to a stop, each in its turn.
#include <array>
#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {
namespace {

urpc::Outcome<std::unique_lock<std::timed_mutex>> LockBy(std::timed_mutex& mutex,
                                                         Deadline deadline) {
  std::unique_lock lock(mutex, Left(deadline));
  if (!lock) {
    return std::unexpected(
        urpc::Failure{urpc::Cause::kDeadline,
                      Code::kDeadlineExceeded,
                      {},
                      "the sentry has not come to the end of another such call in time",
                      0});
  }
  return lock;
}

}  // namespace

Result<Turns::Turn> Sentry::TurnToStandStill(std::string_view what, Deadline deadline) {
  auto turn = turns_.Take(TurnKind::kStandstill, deadline);
  if (!turn) {
    return std::unexpected(ToError(turn.error(), what));
  }
  return *std::move(turn);
}

void Sentry::LeaveTurn(Turns::Turn turn, urpc::Connection call) {
  turns_.Leave(std::move(turn), std::make_shared<urpc::Connection>(std::move(call)));
}

void Sentry::LeaveStart(const std::string& name) {
  auto stored = context_.Take(name);
  auto turn = TurnToStart(std::chrono::steady_clock::now());
  if (stored && turn) {
    LeaveTurn(*std::move(turn), urpc::Connection(*std::move(stored)));
  }
}

std::shared_ptr<urpc::Connection> Sentry::LeaveStandstill(const std::string& name,
                                                          Deadline deadline) {
  auto stored = TakeUpUnanswered(context_, name, deadline);
  auto turn = turns_.Take(TurnKind::kStandstill, deadline);
  if (!stored || !turn) {
    return nullptr;
  }
  auto call = std::make_shared<urpc::Connection>(*std::move(stored));
  turns_.Leave(*std::move(turn), call);
  return call;
}

Status Sentry::CheckStarts(std::string_view what) const {
  const std::lock_guard lock(mutex_);
  if (!state_.started) {
    return Fail(Code::kFailedPrecondition, "{}: its sandbox has not been started", what);
  }
  if (state_.stopped) {
    return Fail(Code::kFailedPrecondition, "{}: its sandbox is paused", what);
  }
  return {};
}

Result<urpc::Connection> Sentry::Start(const Subcontainer& container, std::span<const int> fds,
                                       const StartNames& names, Deadline deadline) {
  const std::string what = Format("start container '{}'", container.id);
  // One that is paused answers at once, and waits for nothing.
  GANTRY_CHECK_OK(CheckStarts(what));
  auto turn = TurnToStart(deadline);
  if (!turn) {
    return std::unexpected(ToError(turn.error(), what));
  }
  GANTRY_CHECK_OK(CheckStarts(what));
  const std::string arg = StartSubcontainerArg(container);
  const std::array<std::string, 2> both = {names.start, names.wait};
  auto opened = OpenDurably(context_, socket(), both, deadline);
  if (!opened) {
    return std::unexpected(ToError(opened.error(), what));
  }
  const auto answer = [&]() -> urpc::Outcome<void> {
    GANTRY_TRY(const auto lock, LockBy(start_mutex_, deadline));
    GANTRY_CHECK_OK(SettleStart(deadline));
    urpc::Connection& call = opened->front();
    GANTRY_CHECK_OK(call.Send({.method = kStartSubcontainer, .arg = arg, .fds = fds}, deadline));
    const auto started = call.Peek(kStartSubcontainer, deadline);
    if (started) {
      return {};
    }
    if (urpc::IsLate(started)) {
      late_start_ = {container.id, std::make_shared<urpc::Connection>(std::move(call))};
      turns_.Leave(*std::move(turn), late_start_->call);
    } else {
      ForgetFailed(container.id, deadline);
    }
    return std::unexpected(started.error());
  }();
  if (!answer) {
    return std::unexpected(ToError(answer.error(), what));
  }
  return std::move(opened->back());
}

urpc::Outcome<void> Sentry::SettleStart(Deadline deadline) {
  if (!late_start_) {
    return {};
  }
  const auto answer = late_start_->call->Peek(kStartSubcontainer, deadline);
  if (urpc::IsLate(answer)) {
    return std::unexpected(answer.error());
  }
  if (!answer) {
    ForgetFailed(late_start_->id, deadline);
  }
  late_start_.reset();
  return {};
}

void Sentry::ForgetFailed(const std::string& container, Deadline deadline) {
  const auto destroyed = manager_.DestroySubcontainer(container, deadline);
  if (!destroyed && destroyed.error().cause != urpc::Cause::kGone &&
      destroyed.error().code != Code::kNotFound) {
    context_.Log(LogLevel::kWarning,
                 ToError(destroyed.error(),
                         Format("forget container '{}', which could not be started", container))
                     .message);
  }
}

urpc::Outcome<Sentry::Executed> Sentry::Execute(const ExecArgs& args, std::span<const int> fds,
                                                Deadline deadline) {
  GANTRY_TRY(Turns::Turn turn, TurnToStart(deadline));
  GANTRY_TRY(urpc::Connection call, urpc::Connection::Open(socket(), deadline));
  const std::string arg = ExecuteArg(args);
  GANTRY_CHECK_OK(call.Send({.method = kExecuteAsync, .arg = arg, .fds = fds}, deadline));
  const auto answer = call.Receive(kExecuteAsync, deadline);
  if (!answer) {
    if (urpc::IsLate(answer)) {
      LeaveTurn(std::move(turn), std::move(call));
    }
    return std::unexpected(answer.error());
  }
  GANTRY_TRY(const int32_t pid, ReadPid(*answer));
  return Executed{.pid = pid, .connection = std::move(call)};
}

urpc::Outcome<void> Sentry::SignalAll(const std::string& container, uint32_t signal,
                                      Deadline deadline) {
  GANTRY_TRY(Turns::Turn turn, turns_.Take(TurnKind::kStandstill, deadline));
  const std::string arg = SignalArg({.container = container, .mode = SignalMode::kAll}, signal);
  GANTRY_TRY(const auto lock, LockBy(signal_mutex_, deadline));
  GANTRY_CHECK_OK(SettleSignal(deadline));
  GANTRY_TRY(urpc::Connection call, CallDurably(context_, socket(), kSignalName,
                                                {.method = kSignal, .arg = arg}, deadline));
  const auto answer = call.Peek(kSignal, deadline);
  if (urpc::IsLate(answer)) {
    // It stays stored: the next engine is to wait for it, too.
    late_signal_ = std::make_shared<urpc::Connection>(std::move(call));
    turns_.Leave(std::move(turn), late_signal_);
  } else {
    context_.Drop(kSignalName);
  }
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return {};
}

urpc::Outcome<void> Sentry::SettleSignal(Deadline deadline) {
  if (!late_signal_) {
    return {};
  }
  if (const auto answer = late_signal_->Peek(kSignal, deadline); urpc::IsLate(answer)) {
    return std::unexpected(answer.error());
  }
  late_signal_.reset();
  context_.Drop(kSignalName);
  return {};
}

}  // namespace gantry::gvisor
