// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/exec.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/launch.h"

namespace gantry::runc {

namespace {

/// The system could not read a file that is there: nothing is known of the exec.
bool IsUnread(const Error& error) { return error.sys_errno != 0 && error.sys_errno != ENOENT; }

}  // namespace

RuncExec::RuncExec(ExecPlace place, ExecRequest request, ProcessContext& context)
    : place_(std::move(place)), request_(std::move(request)), context_(&context) {}

std::string RuncExec::FilePrefix() const {
  // With a prefix, because an exec may be called "init".
  return "exec-" + request_.id.str();
}

std::string RuncExec::Tag() const {
  return "exec/" + place_.container.str() + "/" + request_.id.str();
}

Status RuncExec::Start() {
  const std::string process_file = place_.bundle + "/" + FilePrefix() + ".json";
  // Others may not read the environment in it.
  GANTRY_CHECK_OK(RemoveFile(process_file));
  GANTRY_CHECK_OK(WriteFile(process_file, request_.process_json, 0600));
  Launch launch;
  launch.verb = "exec";
  launch.container = place_.container;
  launch.args = {"--process", process_file, "--detach"};
  launch.bundle = place_.bundle;
  launch.file_prefix = FilePrefix();
  launch.console_name = "tty-" + request_.id.str();
  launch.tag = Tag();
  auto started = LaunchProcess(place_.command, *place_.sandbox, *context_, std::move(launch));
  IgnoreError(RemoveFile(process_file), "it goes with the bundle");
  if (!started) {
    IgnoreError(RemoveFile(PidFile(place_.bundle, FilePrefix())), "it goes with the bundle");
    return std::unexpected(std::move(started).error());
  }
  return Keep(**started);
}

/// The start time tells the process from a later one with its pid, and the start from
/// one that was cut short.
Status RuncExec::Keep(HostProcess& process) {
  const std::string pid_file = PidFile(place_.bundle, FilePrefix());
  Status kept =
      ReplaceFile(pid_file, Format("{} {}", process.pid().value, process.start_time()), 0600);
  if (!kept) {
    // Nobody could take it up again.
    IgnoreError(process.Signal(SIGKILL), "it may have ended by itself");
    IgnoreError(RemoveFile(pid_file), "it goes with the bundle");
  }
  if (request_.terminal) {
    ForgetTerminal(*place_.sandbox, Tag());
  }
  return kept;
}

Status RuncExec::Delete() {
  const std::string prefix = place_.bundle + "/" + FilePrefix();
  GANTRY_CHECK_OK(RemoveFile(prefix + ".pid"));
  // A client that is told of a failure does not ask again, and leaves its fifos then.
  IgnoreError(RemoveUnfinished(prefix + ".pid"), "it goes with the bundle");
  GANTRY_CHECK_OK(RemoveFile(prefix + ".json"));
  GANTRY_CHECK_OK(RemoveFile(prefix + ".log"));
  return RemoveFile(place_.bundle + "/tty-" + request_.id.str());
}

Status RuncExec::Abort(std::string reason) {
  const auto recorded = ReadPidFile(PidFile(place_.bundle, FilePrefix()));
  if (recorded) {
    if (auto process = place_.sandbox->Adopt(recorded->pid)) {
      IgnoreError((*process)->Signal(SIGKILL), "it may have ended by itself");
    }
  }
  if (request_.terminal) {
    ForgetTerminal(*place_.sandbox, Tag());
  }
  GANTRY_CHECK_OK(Delete());
  return Fail(Code::kAborted, "recover exec '{}': {}", request_.id.str(), reason);
}

Status RuncExec::BindRecorded() {
  GANTRY_TRY(const RecordedProcess recorded, ReadPidFile(PidFile(place_.bundle, FilePrefix())));
  const bool on_record = recorded.start_time != 0;
  auto process = on_record ? place_.sandbox->Recover(recorded.pid, recorded.start_time)
                           : place_.sandbox->Adopt(recorded.pid);
  if (request_.terminal && (on_record || !process)) {
    ForgetTerminal(*place_.sandbox, Tag());
  }
  if (!process && process.error().code != Code::kNotFound) {
    return std::unexpected(std::move(process).error());
  }
  if (!process) {
    // It ran, it is gone, and its end is lost with whoever kept it.
    context_->Exited(UnknownExit());
    return {};
  }
  GANTRY_CHECK_OK(context_->Bind(*process));
  return on_record ? Status() : Keep(**process);
}

Status RuncExec::Recover() {
  if (const auto runtime = place_.sandbox->FindSpawned(Tag())) {
    const auto end = runtime->Wait(place_.command.Limit());
    if (!end) {
      EndHanging(*runtime);
      return Abort("its start was under way and hangs");
    }
    if (end->raw != 0) {
      return Abort("its start was under way and failed");
    }
  }
  const auto recorded = ReadPidFile(PidFile(place_.bundle, FilePrefix()));
  if (!recorded && IsUnread(recorded.error())) {
    return std::unexpected(recorded.error());
  }
  if (!recorded) {
    return Abort("it had not been started");
  }
  if (request_.terminal && recorded->start_time == 0) {
    const Status attached = AttachTerminal(*place_.sandbox, *context_, Tag());
    // The engine before may have done so.
    if (!attached && attached.error().code != Code::kFailedPrecondition) {
      return Abort("its terminal was on the way: " + attached.error().message);
    }
  }
  IgnoreError(RemoveFile(place_.bundle + "/" + FilePrefix() + ".json"), "it goes with the bundle");
  return BindRecorded();
}

}  // namespace gantry::runc
