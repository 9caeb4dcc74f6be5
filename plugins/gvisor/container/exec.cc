// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container/exec.h"

#include <signal.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/stdio/streams.h>

#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/spec/process_spec.h"

namespace gantry::gvisor {
GvisorExec::GvisorExec(ExecPlace place, ExecRequest request, ProcessContext& context)
    : place_(std::move(place)),
      request_(std::move(request)),
      context_(context),
      report_(std::make_shared<EndReport>(context)) {}

std::string GvisorExec::Path() const {
  // With a prefix, because an exec may be called "config".
  return Format("{}/exec-{}.pid", place_.bundle, request_.id.str());
}

std::string GvisorExec::Name() const {
  return StoreName("exec", place_.container.str(), request_.id.str());
}

std::string GvisorExec::WaitName() const {
  return StoreName("exec-wait", place_.container.str(), request_.id.str());
}

Status GvisorExec::Start() {
  const Deadline deadline = place_.pod->StepDeadline();
  const auto sentry = place_.pod->sentry();
  if (!sentry || !place_.pod->IsAlive()) {
    return Fail(Code::kFailedPrecondition, "exec '{}' in container '{}': its sandbox has ended",
                request_.id.str(), place_.container.str());
  }
  GANTRY_TRY(ExecArgs args, ReadProcess(request_.process_json,
                                        {.container = place_.container.str(),
                                         .rights = place_.rights,
                                         .net_raw = AllowsRawSockets(place_.pod->record().conf)}));
  args.terminal = request_.terminal;
  // Of one before it with that id, which an engine has deleted that had only its record.
  GANTRY_CHECK_OK(RemoveFile(Path()));
  SandboxContext& sandbox = place_.pod->context();
  GANTRY_TRY(const Streams streams, TakeStreams(context_, ConsoleKind::kForeign));
  const std::array<int, 3> fds = {streams.ends[0].get(), streams.ends[1].get(),
                                  streams.ends[2].get()};
  const std::string arg = ExecuteArg(args);
  const std::array<std::string, 2> names = {Name(), WaitName()};
  std::vector<urpc::Connection> opened;
  const auto answer = [&]() -> urpc::Outcome<urpc::Answer> {
    GANTRY_TRY(Turns::Turn turn, sentry->TurnToStart(deadline));
    GANTRY_TRY(opened, OpenDurably(sandbox, sentry->socket(), names, deadline));
    urpc::Connection& call = opened.front();
    GANTRY_CHECK_OK(call.Send({.method = kExecuteAsync, .arg = arg, .fds = fds}, deadline));
    auto started = call.Peek(kExecuteAsync, deadline);
    if (urpc::IsLate(started)) {
      sentry->LeaveTurn(std::move(turn), std::move(call));
    }
    return started;
  }();
  if (!answer) {
    sandbox.Drop(Name());
    sandbox.Drop(WaitName());
    return std::unexpected(
        ToError(answer.error(),
                Format("exec '{}' in container '{}'", request_.id.str(), place_.container.str())));
  }
  return Keep(std::move(opened.front()), std::move(opened.back()), deadline);
}

Status GvisorExec::Keep(urpc::Connection call, std::optional<urpc::Connection> wait,
                        Deadline deadline) {
  const std::string what = Format("exec '{}'", request_.id.str());
  const auto answer = call.Peek(kExecuteAsync, deadline);
  const auto pid =
      answer ? ReadPid(*answer) : urpc::Outcome<int32_t>(std::unexpected(answer.error()));
  if (!pid) {
    return std::unexpected(ToError(pid.error(), what));
  }
  pid_ = *pid;
  SandboxContext& sandbox = place_.pod->context();
  if (Status kept = KnownProcess{pid_, {}}.Write(Path()); !kept) {
    // Nobody could take it up again.
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
    sandbox.Drop(Name());
    sandbox.Drop(WaitName());
    return kept;
  }
  place_.table->Put(pid_, request_.id);
  if (const auto process = place_.pod->process()) {
    context_.SetPid(process->pid());
  }
  auto asked = AskForEnd(std::move(wait), deadline);
  sandbox.Drop(Name());
  if (!asked && asked.error().cause != urpc::Cause::kGone) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
    return std::unexpected(ToError(asked.error(), what));
  }
  std::vector<urpc::Connection> waits;
  if (asked) {
    waits.push_back(*std::move(asked));
  }
  return Watch(std::move(waits));
}

/// Not on the connection of the start: what lies in the store shall be the answer to one
/// question only.
urpc::Outcome<urpc::Connection> GvisorExec::AskForEnd(std::optional<urpc::Connection> wait,
                                                      Deadline deadline) {
  const std::string arg = WaitPidArg(place_.container.str(), pid_);
  if (wait) {
    GANTRY_CHECK_OK(wait->Send({.method = kWaitPid, .arg = arg}, deadline));
    return *std::move(wait);
  }
  return CallDurably(place_.pod->context(), place_.pod->sentry()->socket(), WaitName(),
                     {.method = kWaitPid, .arg = arg}, deadline);
}

Status GvisorExec::Watch(std::vector<urpc::Connection> waits) {
  if (waits.empty()) {
    report_->Tell(ExitedNow(kKilledStatus));
    return {};
  }
  GANTRY_TRY(wait_, AwaitEnd(place_.pod->context(), std::move(waits),
                             TellEnd(report_, {place_.pod, Path(), WaitName(), pid_})));
  return {};
}

Status GvisorExec::Signal(SignalMode mode, uint32_t signal) {
  const int32_t pid = pid_;
  if (pid == 0) {
    // To the sentry that is the container's init.
    return Fail(Code::kFailedPrecondition, "signal exec '{}': it has not been started",
                request_.id.str());
  }
  return SendSignal(*place_.pod, {.container = place_.container.str(), .pid = pid, .mode = mode},
                    signal);
}

Status GvisorExec::Kill(uint32_t signal) { return Signal(SignalMode::kProcess, signal); }

Status GvisorExec::ConsoleSignal(uint32_t signal) {
  return Signal(SignalMode::kForeground, signal);
}

Status GvisorExec::Delete() {
  SandboxContext& sandbox = place_.pod->context();
  if (wait_ && !report_->told()) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
    wait_->Settle(place_.pod->StepDeadline());
  }
  place_.table->Remove(request_.id);
  sandbox.Drop(Name());
  sandbox.Drop(WaitName());
  GANTRY_CHECK_OK(RemoveUnfinished(Path()));
  return RemoveFile(Path());
}

Status GvisorExec::Abort(std::string_view reason) {
  GANTRY_CHECK_OK(Delete());
  return Fail(Code::kAborted, "recover exec '{}': {}", request_.id.str(), reason);
}

Status GvisorExec::Recover() {
  const auto known = KnownProcess::Read(Path());
  if (known) {
    pid_ = known->pid;
    if (!known->exit) {
      return TakeUp();
    }
    // No other engine may ask for it again.
    place_.pod->context().Drop(WaitName());
    report_->TellKnown(*known);
    return {};
  }
  if (known.error().code != Code::kNotFound) {
    return std::unexpected(known.error());
  }
  const Deadline deadline = place_.pod->StepDeadline();
  auto call = TakeUpCall(place_.pod->context(), Name(), deadline);
  if (!call) {
    if (const auto sentry = place_.pod->sentry(); sentry && urpc::IsLate(call)) {
      sentry->LeaveStart(Name());
    }
    return Abort(call.error().text);
  }
  if (!*call) {
    return Abort("it had not been started");
  }
  if (const auto answer = (*call)->Peek(kExecuteAsync, deadline); !answer) {
    return Abort(answer.error().text);
  }
  return Keep(std::move(**call), std::nullopt, deadline);
}

/// Its pid is on record; whether the question how it ends had been sent is not. So it is sent
/// once more: whichever of the two a sentry takes first has the answer, and of another, or of
/// one that it reads half, nobody reads what comes.
Status GvisorExec::TakeUp() {
  const Deadline deadline = place_.pod->StepDeadline();
  place_.table->Put(pid_, request_.id);
  if (const auto process = place_.pod->process()) {
    context_.SetPid(process->pid());
  }
  SandboxContext& sandbox = place_.pod->context();
  sandbox.Drop(Name());
  std::vector<urpc::Connection> waits;
  if (auto stored = sandbox.Take(WaitName())) {
    urpc::Connection& wait = waits.emplace_back(std::move(*stored));
    const std::string arg = WaitPidArg(place_.container.str(), pid_);
    if (const auto sent = wait.Send({.method = kWaitPid, .arg = arg}, deadline); !sent) {
      sandbox.Log(LogLevel::kDebug, Format("exec '{}': {}", request_.id.str(), sent.error().text));
    }
  } else if (place_.pod->sentry() && place_.pod->IsAlive()) {
    if (auto wait = AskForEnd(std::nullopt, deadline)) {
      waits.push_back(*std::move(wait));
    }
  }
  return Watch(std::move(waits));
}

}  // namespace gantry::gvisor
