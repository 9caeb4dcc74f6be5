// SPDX-License-Identifier: Apache-2.0
//
// The calls of a sentry that start a process or bring all to a stop, each in its slot.
#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {

Result<CallSlots::Slot> Sentry::TakeSlot(CallKind kind, std::string_view what, Deadline deadline) {
  auto slot = slots_.Take(kind, deadline);
  return slot ? Result<CallSlots::Slot>(*std::move(slot))
              : std::unexpected(ToError(slot.error(), what));
}

void Sentry::LeaveStart(DurableCall call) {
  call.Settle();
  if (auto slot = slots_.Take(CallKind::kExec, std::chrono::steady_clock::now())) {
    slots_.Leave(*std::move(slot), std::move(call));
  }
}

void Sentry::LeaveStandstill(CallKind kind, const char* name, Deadline deadline) {
  auto call = DurableCall::TakeUp(context_, name);
  if (!call) {
    return;
  }
  const auto asked = call->AskWhetherSent(deadline);
  auto slot = slots_.Take(kind, deadline);
  if (slot && (asked || asked.error().cause == urpc::Cause::kGone)) {
    slots_.Leave(*std::move(slot), *std::move(call));
  }
}

urpc::Outcome<void> Sentry::CallInSlot(CallSlots::Slot& slot, const char* name,
                                       const urpc::Request& request, Deadline deadline) {
  GANTRY_TRY(DurableCall call, DurableCall::Begin(context_, socket(), name, request, deadline));
  const auto answer = call.Peek(request.method, deadline);
  if (urpc::IsLate(answer)) {
    // It stays stored: the next engine is to wait for it, too.
    slots_.Leave(std::move(slot), std::move(call));
  } else {
    call.Settle();
  }
  return answer ? urpc::Outcome<void>() : std::unexpected(answer.error());
}

Status Sentry::CheckStarts(std::string_view what) const {
  const MutexLock lock(mutex_);
  if (!state_.started) {
    return Fail(Code::kFailedPrecondition, "{}: its sandbox has not been started", what);
  }
  if (state_.stopped) {
    return Fail(Code::kFailedPrecondition, "{}: its sandbox is paused", what);
  }
  return {};
}

Result<Sentry::Started> Sentry::Start(const Subcontainer& container, std::span<const int> fds,
                                      const CallNames& names, Deadline deadline) {
  const std::string what = Format("start container '{}'", container.id);
  // One that is paused answers at once, and waits for nothing.
  GANTRY_CHECK_OK(CheckStarts(what));
  GANTRY_TRY(CallSlots::Slot slot, TakeSlot(CallKind::kStart, what, deadline));
  GANTRY_CHECK_OK(CheckStarts(what));
  auto started = SendStart(slot, container, fds, names, deadline);
  if (!started) {
    return std::unexpected(ToError(started.error(), what));
  }
  return *std::move(started);
}

urpc::Outcome<Sentry::Started> Sentry::SendStart(CallSlots::Slot& slot,
                                                 const Subcontainer& container,
                                                 std::span<const int> fds, const CallNames& names,
                                                 Deadline deadline) {
  GANTRY_CHECK_OK(SettleStart(slot, deadline));
  GANTRY_TRY(Started started, Open(names, deadline));
  DurableCall& call = started.call;
  const std::string arg = StartSubcontainerArg(container);
  GANTRY_CHECK_OK(call.Send({.method = kStartSubcontainer, .arg = arg, .fds = fds}, deadline));
  const auto answer = call.Peek(kStartSubcontainer, deadline);
  if (answer) {
    return started;
  }
  if (!urpc::IsLate(answer)) {
    ForgetFailed(container.id, deadline);
  }
  if (call.state() == DurableCall::State::kAnswered) {
    // In this order: who finds the second one alone takes it for started.
    started.wait.Settle();
    call.Settle();
    return std::unexpected(answer.error());
  }
  // It may run: the next engine is to ask how it ends.
  std::move(started.wait).Release();
  if (urpc::IsLate(answer)) {
    slots_.Leave(std::move(slot), std::move(call), container.id);
  }
  return std::unexpected(answer.error());
}

urpc::Outcome<void> Sentry::SettleStart(CallSlots::Slot& slot, Deadline deadline) {
  auto late = slots_.TakeLateStart();
  if (!late) {
    return {};
  }
  const auto answer = late->call.Peek(kStartSubcontainer, deadline);
  if (urpc::IsLate(answer)) {
    slots_.Leave(std::move(slot), std::move(late->call), std::move(late->container));
    return std::unexpected(answer.error());
  }
  if (!answer) {
    ForgetFailed(late->container, deadline);
  }
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

urpc::Outcome<Sentry::Started> Sentry::Open(const CallNames& names, Deadline deadline) {
  GANTRY_TRY(DurableCall call, DurableCall::Open(context_, socket(), names.start, deadline));
  GANTRY_TRY(DurableCall wait, DurableCall::Open(context_, socket(), names.wait, deadline));
  GANTRY_CHECK_OK(DurableCall::Store({&call, &wait}));
  return Started{.call = std::move(call), .wait = std::move(wait)};
}

urpc::Outcome<Sentry::Started> Sentry::Execute(const ExecArgs& args, std::span<const int> fds,
                                               const CallNames& names, Deadline deadline) {
  GANTRY_TRY(CallSlots::Slot slot, slots_.Take(CallKind::kExec, deadline));
  GANTRY_TRY(Started started, Open(names, deadline));
  const std::string arg = ExecuteArg(args);
  GANTRY_CHECK_OK(started.call.Send({.method = kExecuteAsync, .arg = arg, .fds = fds}, deadline));
  if (const auto answer = started.call.Peek(kExecuteAsync, deadline); !answer) {
    started.call.Settle();
    if (urpc::IsLate(answer)) {
      slots_.Leave(std::move(slot), std::move(started.call));
    }
    return std::unexpected(answer.error());
  }
  return started;
}

urpc::Outcome<Sentry::Executed> Sentry::Execute(const ExecArgs& args, std::span<const int> fds,
                                                Deadline deadline) {
  GANTRY_TRY(CallSlots::Slot slot, slots_.Take(CallKind::kExec, deadline));
  GANTRY_TRY(urpc::Connection call, urpc::Connection::Open(socket(), deadline));
  const std::string arg = ExecuteArg(args);
  GANTRY_CHECK_OK(call.Send({.method = kExecuteAsync, .arg = arg, .fds = fds}, deadline));
  const auto answer = call.Receive(kExecuteAsync, deadline);
  if (!answer) {
    if (urpc::IsLate(answer)) {
      slots_.Leave(std::move(slot), DurableCall::NotStored(context_, std::move(call)));
    }
    return std::unexpected(answer.error());
  }
  GANTRY_TRY(const int32_t pid, ReadPid(*answer));
  return Executed{.pid = pid, .connection = std::move(call)};
}

urpc::Outcome<void> Sentry::SignalAll(const std::string& container, uint32_t signal,
                                      Deadline deadline) {
  GANTRY_TRY(CallSlots::Slot slot, slots_.Take(CallKind::kSignalAll, deadline));
  const std::string arg = SignalArg({.container = container, .mode = SignalMode::kAll}, signal);
  return CallInSlot(slot, kSignalName, {.method = kSignal, .arg = arg}, deadline);
}

}  // namespace gantry::gvisor
