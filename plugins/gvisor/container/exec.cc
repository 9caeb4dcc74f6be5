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

#include "plugins/gvisor/spec/process_spec.h"

namespace gantry::gvisor {
GvisorExec::GvisorExec(ExecPlace place, ExecRequest request, ProcessContext& context)
    : place_(std::move(place)),
      request_(std::move(request)),
      context_(context),
      names_(CallNames::OfExec(place_.container.str(), request_.id.str())),
      report_(std::make_shared<EndReport>(context)) {}

std::string GvisorExec::Path() const {
  // With a prefix, because an exec may be called "config".
  return Format("{}/exec-{}.pid", place_.bundle, request_.id.str());
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
  GANTRY_TRY(const Streams streams, TakeStreams(context_, ConsoleKind::kForeign));
  const std::array<int, 3> fds = {streams.ends[0].get(), streams.ends[1].get(),
                                  streams.ends[2].get()};
  auto started = sentry->Execute(args, fds, names_, deadline);
  if (!started) {
    return std::unexpected(
        ToError(started.error(),
                Format("exec '{}' in container '{}'", request_.id.str(), place_.container.str())));
  }
  return Keep(std::move(started->call), std::move(started->wait), deadline);
}

Status GvisorExec::Keep(DurableCall call, std::optional<DurableCall> wait, Deadline deadline) {
  const std::string what = Format("exec '{}'", request_.id.str());
  const auto answer = call.Peek(kExecuteAsync, deadline);
  const auto pid =
      answer ? ReadPid(*answer) : urpc::Outcome<int32_t>(std::unexpected(answer.error()));
  if (!pid) {
    call.Settle();
    return std::unexpected(ToError(pid.error(), what));
  }
  pid_ = *pid;
  if (Status kept = KnownProcess{pid_, {}}.Write(Path()); !kept) {
    // Nobody could take it up again.
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
    call.Settle();
    return kept;
  }
  place_.table->Put(pid_, request_.id);
  if (const auto process = place_.pod->process()) {
    context_.SetPid(process->pid());
  }
  auto asked = AskForEnd(std::move(wait), deadline);
  call.Settle();
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
urpc::Outcome<urpc::Connection> GvisorExec::AskForEnd(std::optional<DurableCall> wait,
                                                      Deadline deadline) {
  const std::string arg = WaitPidArg(place_.container.str(), pid_);
  const urpc::Request question{.method = kWaitPid, .arg = arg};
  if (wait) {
    GANTRY_CHECK_OK(wait->Send(question, deadline));
    return (*std::move(wait)).Release();
  }
  GANTRY_TRY(DurableCall asked,
             DurableCall::Begin(place_.pod->context(), place_.pod->sentry()->socket(), names_.wait,
                                question, deadline));
  return std::move(asked).Release();
}

Status GvisorExec::Watch(std::vector<urpc::Connection> waits) {
  if (waits.empty()) {
    report_->Tell(ExitedNow(kKilledStatus));
    return {};
  }
  GANTRY_TRY(wait_, AwaitEnd(place_.pod->context(), std::move(waits),
                             TellEnd(report_, {place_.pod, Path(), names_.wait, pid_})));
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
  if (wait_ && !report_->told()) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
    wait_->Settle(place_.pod->StepDeadline());
  }
  place_.table->Remove(request_.id);
  names_.Drop(place_.pod->context());
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
    names_.Drop(place_.pod->context());
    report_->TellKnown(*known);
    return {};
  }
  if (known.error().code != Code::kNotFound) {
    return std::unexpected(known.error());
  }
  const Deadline deadline = place_.pod->StepDeadline();
  auto call = DurableCall::TakeUp(place_.pod->context(), names_.start);
  if (!call) {
    return Abort(call.error().code == Code::kNotFound ? "it had not been started"
                                                      : call.error().message);
  }
  const auto sent = call->WasSent(deadline);
  if (!sent || !*sent) {
    if (const auto sentry = place_.pod->sentry(); sentry && urpc::IsLate(sent)) {
      sentry->LeaveStart(*std::move(call));
    }
    return Abort(sent ? "it had not been started" : sent.error().text);
  }
  if (const auto answer = call->Peek(kExecuteAsync, deadline); !answer) {
    return Abort(answer.error().text);
  }
  return Keep(*std::move(call), std::nullopt, deadline);
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
  sandbox.Drop(names_.start);
  std::vector<urpc::Connection> waits;
  if (auto wait = DurableCall::TakeUp(sandbox, names_.wait)) {
    const std::string arg = WaitPidArg(place_.container.str(), pid_);
    if (const auto sent = wait->Send({.method = kWaitPid, .arg = arg}, deadline); !sent) {
      sandbox.Log(LogLevel::kDebug, Format("exec '{}': {}", request_.id.str(), sent.error().text));
    }
    waits.push_back((*std::move(wait)).Release());
  } else if (place_.pod->sentry() && place_.pod->IsAlive()) {
    if (auto asked = AskForEnd(std::nullopt, deadline)) {
      waits.push_back(*std::move(asked));
    }
  }
  return Watch(std::move(waits));
}

}  // namespace gantry::gvisor
