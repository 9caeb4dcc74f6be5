// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/launch.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include <gantry/fingerprint.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/console.h"

namespace gantry::runc {
namespace {

/// The container's user must be able to open `/dev/stdout` again, which asks
/// for the permissions of the fifo behind it.
Status GiveAway(const UniqueFd& fd, const Options& options) {
  struct stat info = {};
  if ((options.io_uid == 0 && options.io_gid == 0) || fstat(fd.get(), &info) != 0 ||
      !S_ISFIFO(info.st_mode)) {
    return {};
  }
  if (fchown(fd.get(), options.io_uid, options.io_gid) != 0) {
    return FailErrno(errno, "give a stdio fifo to IoUid {}, IoGid {}", options.io_uid,
                     options.io_gid);
  }
  return {};
}

Status PassStream(StreamEnd end, int number, const Options& options, OciCall& call) {
  if (!end.fd) {
    return {};
  }
  GANTRY_CHECK_OK(GiveAway(end.fd, options));
  call.fds.emplace_back(std::move(end.fd), number);
  return {};
}

Status PassStdio(Stdio stdio, const Options& options, OciCall& call) {
  GANTRY_CHECK_OK(PassStream(std::move(stdio.in), STDIN_FILENO, options, call));
  GANTRY_CHECK_OK(PassStream(std::move(stdio.out), STDOUT_FILENO, options, call));
  return PassStream(std::move(stdio.err), STDERR_FILENO, options, call);
}

Status CheckStreams(const OciCall& call, const std::array<bool, 3>& needed) {
  constexpr std::array kNames = {"stdin", "stdout", "stderr"};
  for (size_t i = 0; i < needed.size(); ++i) {
    const auto is_it = [i](const auto& fd) { return static_cast<size_t>(fd.second) == i; };
    if (needed[i] && std::ranges::none_of(call.fds, is_it)) {
      return Fail(Code::kFailedPrecondition,
                  "{} container '{}': it was saved with a {}, and is to have none: criu cannot "
                  "leave it out",
                  call.verb, call.object, kNames[i]);
    }
  }
  return {};
}

OciCall MakeCall(Launch& launch, const std::string& pid_file, const ConsoleSocket* console,
                 std::chrono::milliseconds limit) {
  OciCall call;
  call.verb = launch.verb;
  call.object = launch.container.str();
  call.args = std::move(launch.args);
  call.env = std::move(launch.env);
  call.args.emplace_back("--pid-file");
  call.args.push_back(pid_file);
  if (console != nullptr) {
    call.args.emplace_back("--console-socket");
    call.args.push_back(console->name());
  }
  call.args.push_back(launch.container.str());
  call.bundle = launch.bundle;
  call.log_name = launch.file_prefix + ".log";
  // With a terminal the runtime's own streams are not the container's.
  call.capture = console != nullptr;
  call.tag = launch.tag;
  call.limit = limit;
  return call;
}

Result<std::shared_ptr<HostProcess>> AdoptNew(SandboxContext& context, const std::string& pid_file,
                                              const Launch& launch) {
  const auto recorded = ReadPidFile(pid_file);
  if (!recorded) {
    return Fail(Code::kInternal, "run the OCI runtime's '{}' for '{}': it succeeded, but: {}",
                launch.verb, launch.container.str(), recorded.error().message);
  }
  return context.Adopt(recorded->pid);
}

/// What the terminal's socket is called in the store, whose names are short.
std::string StoredName(const std::string& tag) {
  return Format("console/{:016x}", Fingerprint(tag));
}

Result<std::shared_ptr<HostProcess>> LaunchAndConnect(const OciCommand& command,
                                                      SandboxContext& context,
                                                      ProcessContext& process, Launch launch) {
  const std::string pid_file = PidFile(launch.bundle, launch.file_prefix);
  GANTRY_CHECK_OK(RemoveFile(pid_file));
  GANTRY_TRY(Stdio stdio, process.TakeStdio());
  std::optional<ConsoleSocket> console;
  if (stdio.terminal) {
    GANTRY_TRY(ConsoleSocket listening, ConsoleSocket::Listen(launch.bundle, launch.console_name));
    console.emplace(std::move(listening));
    GANTRY_CHECK_OK(context.Store(StoredName(launch.tag), console->listener()));
  }
  OciCall call = MakeCall(launch, pid_file, console ? &*console : nullptr, command.Limit());
  GANTRY_CHECK_OK(PassStdio(std::move(stdio), command.options(), call));
  GANTRY_CHECK_OK(CheckStreams(call, launch.needed_streams));
  GANTRY_CHECK_OK(command.Run(std::move(call)));
  GANTRY_TRY(auto host, AdoptNew(context, pid_file, launch));
  Status connected = console ? AttachTerminal(context, process, launch.tag) : Status();
  if (connected) {
    connected = process.Bind(host);
  }
  if (!connected) {
    IgnoreError(host->Signal(SIGKILL), "it may have ended by itself");
    return std::unexpected(std::move(connected).error());
  }
  return host;
}

}  // namespace

std::string PidFile(const std::string& bundle, const std::string& file_prefix) {
  return bundle + "/" + file_prefix + ".pid";
}

Result<RecordedProcess> ReadPidFile(const std::string& path) {
  GANTRY_TRY(std::string text, ReadFile(path, 256));
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  const size_t space = text.find(' ');
  const auto pid = ParseNumber(std::string_view(text).substr(0, space));
  if (!pid || *pid < 2 || *pid > INT32_MAX) {
    return Fail(Code::kInternal, "read the pid file '{}': no pid in it", path);
  }
  RecordedProcess recorded{{static_cast<int32_t>(*pid)}, 0};
  if (space != std::string::npos) {
    const auto start_time = ParseNumber(std::string_view(text).substr(space + 1));
    recorded.start_time = start_time ? static_cast<uint64_t>(*start_time) : 0;
  }
  return recorded;
}

ExitStatus UnknownExit() {
  constexpr uint32_t kUnknownExitStatus = 255;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {kUnknownExitStatus, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

Status AttachTerminal(SandboxContext& context, ProcessContext& process, const std::string& tag) {
  GANTRY_TRY(const UniqueFd socket, context.Take(StoredName(tag)));
  GANTRY_TRY(UniqueFd master, ReceiveTerminal(socket));
  return process.AttachConsole(std::move(master));
}

void ForgetTerminal(SandboxContext& context, const std::string& tag) {
  context.Drop(StoredName(tag));
}

Result<std::shared_ptr<HostProcess>> LaunchProcess(const OciCommand& command,
                                                   SandboxContext& context, ProcessContext& process,
                                                   Launch launch) {
  const std::string tag = launch.tag;
  auto launched = LaunchAndConnect(command, context, process, std::move(launch));
  if (!launched) {
    ForgetTerminal(context, tag);
  }
  return launched;
}

}  // namespace gantry::runc
