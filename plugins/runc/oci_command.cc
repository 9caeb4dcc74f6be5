// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/oci_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/runc/documents.h"
#include "plugins/runc/sealed_binary.h"

namespace gantry::runc {
namespace {

/// Of the runtime's log and of what it prints, the end is kept.
constexpr size_t kMaxOutputBytes = 64U << 10;
/// What of it goes into a message that containerd's users read.
constexpr size_t kMaxShownBytes = 2048;

/// Takes what is in the pipe. False: its writers are gone.
bool Drain(const UniqueFd& pipe, std::string& output) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = read(pipe.get(), buffer.data(), buffer.size());
    if (n > 0) {
      output.append(buffer.data(), static_cast<size_t>(n));
      if (output.size() > 2 * kMaxOutputBytes) {
        output.erase(0, output.size() - kMaxOutputBytes);
      }
    } else if (n == 0 || errno != EINTR) {
      return n < 0 && errno == EAGAIN;
    }
  }
}

/// Reads until the process has ended: a child that it left behind may hold the
/// pipe open, and a reader that stops would let a chatty program hang.
std::string Capture(const HostProcess& process, const UniqueFd& pipe, Deadline deadline) {
  std::string output;
  const auto pidfd = OpenPidfd(process.pid());
  bool open = pidfd && !process.Ended();
  while (open) {
    std::array<pollfd, 2> fds = {pollfd{pipe.get(), POLLIN, 0}, pollfd{pidfd->get(), POLLIN, 0}};
    const int ready = poll(fds.data(), fds.size(), PollTimeout(deadline));
    if (ready == 0 || (ready < 0 && errno != EINTR)) {
      break;
    }
    open = Drain(pipe, output) && fds[1].revents == 0;
  }
  Drain(pipe, output);
  return output;
}

std::string Shown(std::string_view text) {
  const size_t start = text.size() > kMaxShownBytes ? text.size() - kMaxShownBytes : 0;
  std::string shown;
  for (const char c : text.substr(start)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += c == '\n' || c == '\t' ? ' ' : (byte < 0x20 || byte >= 0x7f) ? '?' : c;
  }
  const size_t first = shown.find_first_not_of(' ');
  const size_t last = shown.find_last_not_of(' ');
  return first == std::string::npos ? std::string() : shown.substr(first, last - first + 1);
}

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? Format("{} (SIG{})", number, name) : Format("{}", number);
}

/// The command as messages name it: `'/usr/bin/crun create' for 'c1'`.
std::string CommandName(const std::string& binary, const OciCall& call) {
  return Format("'{} {}' for '{}'", binary, call.verb, call.object);
}

/// What the log and the output of a run tell.
struct RuntimeMessage {
  std::string reason;
  std::string detail;
};

/// Empty: it has none.
std::string LogPath(const OciCall& call) {
  return call.log_name.empty() ? std::string() : call.bundle + "/" + call.log_name;
}

Status RemoveLog(const std::string& path) { return path.empty() ? Status() : RemoveFile(path); }

RuntimeMessage ReadRuntimeMessage(const std::string& log_path, const std::string& output) {
  RuntimeMessage message;
  const auto log = ReadTail(log_path, kMaxOutputBytes);
  IgnoreError(RemoveLog(log_path), "it goes with the bundle");
  if (log) {
    message.reason = LastLogError(*log);
    message.detail = *log;
  }
  message.detail += output;
  return message;
}

Result<SpawnRequest> CopyOf(const SpawnRequest& request) {
  SpawnRequest copy;
  copy.argv = request.argv;
  copy.env = request.env;
  copy.cwd = request.cwd;
  copy.tag = request.tag;
  copy.ignore_sigpipe = request.ignore_sigpipe;
  for (const auto& [fd, number] : request.fds) {
    GANTRY_TRY(UniqueFd second, fd.Duplicate());
    copy.fds.emplace_back(std::move(second), number);
  }
  return copy;
}

std::unexpected<Error> Explain(const std::string& binary, const OciCall& call,
                               const WaitStatus& end, RuntimeMessage message,
                               const std::string& output) {
  Error error;
  error.detail = std::move(message.detail);
  const std::string name = CommandName(binary, call);
  if (WIFSIGNALED(end.raw)) {
    error.message = Format("run the OCI runtime {}: it was killed by signal {}", name,
                           SignalName(WTERMSIG(end.raw)));
  } else if (!message.reason.empty()) {
    // The runtime's own words, as the user knows them.
    error.code = BlamesWorkload(message.reason) ? Code::kInvalidArgument : Code::kInternal;
    error.message = Format("OCI runtime {} failed: {}", call.verb,
                           message.reason.substr(0, 2 * kMaxShownBytes));
    if (BlamesHybridCgroups(message.reason)) {
      error.code = Code::kFailedPrecondition;
      error.message += "; " + HybridRemedy(cgroup::NodeCgroups::At());
    }
  } else if (const std::string shown = Shown(output); !shown.empty()) {
    error.message =
        Format("run the OCI runtime {}: exit code {}, and no error in its log; it printed: {}",
               name, WEXITSTATUS(end.raw), shown);
  } else {
    error.message = Format("run the OCI runtime {}: exit code {}, without a word why", name,
                           WEXITSTATUS(end.raw));
  }
  return std::unexpected(std::move(error));
}

}  // namespace

void AddFlag(std::vector<std::string>& args, bool set, const char* flag) {
  if (set) {
    args.emplace_back(flag);
  }
}

OciCommand::OciCommand(Options options, const Namespace& ns, SandboxContext& context)
    : options_(std::move(options)), root_(options_.root + "/" + ns.str()), context_(&context) {}

Result<std::string> OciCommand::Binary() const {
  if (!binary_.empty()) {
    return binary_;
  }
  return FindRuntime(options_);
}

std::chrono::milliseconds OciCommand::Limit(int times) const {
  constexpr std::chrono::milliseconds kWithoutAny = std::chrono::minutes(1);
  const std::chrono::milliseconds left = context_->TimeLeft();
  if (options_.timeout) {
    return std::min(left, *options_.timeout * times);
  }
  return left == std::chrono::milliseconds::max() ? kWithoutAny * times : left;
}

std::string OciCommand::StateDirectory(const ContainerId& id) const {
  return root_ + "/" + id.str();
}

std::vector<std::string> OciCommand::Arguments(const std::string& binary,
                                               const OciCall& call) const {
  std::vector<std::string> argv = {binary, "--root", root_};
  if (!call.log_name.empty()) {
    argv.insert(argv.end(), {"--log", LogPath(call), "--log-format", "json"});
  }
  if (options_.systemd_cgroup) {
    argv.emplace_back("--systemd-cgroup");
  }
  argv.push_back(call.verb);
  argv.insert(argv.end(), call.args.begin(), call.args.end());
  return argv;
}

Result<HostCommand> OciCommand::ForcedDelete(const ContainerId& id,
                                             const std::string& bundle) const {
  GANTRY_TRY(const std::string binary, Binary());
  OciCall call;
  call.verb = "delete";
  call.object = id.str();
  call.args = {"--force", id.str()};
  return HostCommand{Arguments(binary, call), {"PATH=" + SearchPath(options_)}, bundle};
}

Result<std::shared_ptr<HostProcess>> OciCommand::Spawn(const std::string& binary,
                                                       SpawnRequest request) const {
  const auto sealed = options_.seal_binary ? Seal(binary) : nullptr;
  if (!sealed) {
    return context_->Spawn(std::move(request));
  }
  GANTRY_TRY(SpawnRequest plain, CopyOf(request));
  GANTRY_TRY(request.program, sealed->Program());
  auto process = context_->Spawn(std::move(request));
  if (process) {
    return process;
  }
  auto second = context_->Spawn(std::move(plain));
  if (second) {
    ForgetSealed(binary);
    context_->Log(LogLevel::kInfo, "'" + binary + "' cannot be run from a sealed copy (" +
                                       process.error().message + "); it makes its own");
  }
  return second;
}

Status OciCommand::Run(OciCall call) const {
  GANTRY_TRY(const std::string binary, Binary());
  const Deadline deadline = std::chrono::steady_clock::now() + call.limit;
  const std::string log_path = LogPath(call);
  GANTRY_CHECK_OK(RemoveLog(log_path));
  SpawnRequest request;
  request.argv = Arguments(binary, call);
  request.env = std::move(call.env);
  request.env.push_back("PATH=" + SearchPath(options_));
  request.cwd = call.bundle;
  request.fds = std::move(call.fds);
  request.tag = call.tag;
  // A hook need not read what it is told, and crun (1.21) would end by that: the hooks behind it
  // would not be run, and the call would fail. Source: crun, run_process_with_stdin_timeout_envp.
  request.ignore_sigpipe = true;
  UniqueFd reader;
  if (call.capture) {
    GANTRY_TRY(auto output_pipe, MakePipe());
    // The program that prints must not see O_NONBLOCK; it is per end.
    GANTRY_CHECK_OK(SetNonblocking(output_pipe.second.get(), false));
    GANTRY_TRY(UniqueFd second, output_pipe.second.Duplicate());
    request.fds.emplace_back(std::move(output_pipe.second), STDOUT_FILENO);
    request.fds.emplace_back(std::move(second), STDERR_FILENO);
    reader = std::move(output_pipe.first);
  }
  auto process = Spawn(binary, std::move(request));
  if (!process) {
    Error error =
        std::move(process).error().Within("run the OCI runtime " + CommandName(binary, call));
    // "Not found" would tell containerd that there is no such container.
    error.code = error.code == Code::kNotFound ? Code::kFailedPrecondition : error.code;
    return std::unexpected(std::move(error));
  }
  context_->Count("oci_runs");
  std::string output = reader ? Capture(**process, reader, deadline) : std::string();
  const auto end = (*process)->Wait(Left(deadline));
  if (!end && end.error().code == Code::kDeadlineExceeded) {
    EndHanging(**process);
    IgnoreError(RemoveLog(log_path), "it goes with the bundle");
    return Fail(Code::kDeadlineExceeded, "run the OCI runtime {}: not done after {} ms, killed",
                CommandName(binary, call), call.limit.count());
  }
  if (!end) {
    return std::unexpected(end.error());
  }
  RuntimeMessage message = ReadRuntimeMessage(log_path, output);
  if (end->raw == 0) {
    if (call.output != nullptr) {
      *call.output = std::move(output);
    }
    return {};
  }
  return Explain(binary, call, *end, std::move(message), output);
}

bool BlamesHybridCgroups(std::string_view text) {
  return text.contains("cgroups in hybrid mode not supported");
}

bool BlamesWorkload(std::string_view text) {
  constexpr std::array kPhrases = {
      // runc: `exec: "x": executable file not found in $PATH` and its kin.
      "exec: \"", "exec format error", "it is not executable", "unable to find user",
      "unable to find group", "chdir to cwd",
      // crun: "executable file `x` not found", "open executable", "exec `x`".
      "executable file", "open executable", "exec `", "Exec format error", "chdir to `"};
  return std::ranges::any_of(kPhrases, [&](const char* phrase) { return text.contains(phrase); });
}

void EndHanging(HostProcess& process) {
  const auto pidfd = OpenPidfd(process.pid());
  // While it has not ended, its pid, and so the descriptor, is its own.
  if (pidfd && !process.Ended()) {
    KillGroup(*pidfd);
  }
  IgnoreError(process.Signal(SIGKILL), "it may have ended by now");
  IgnoreError(process.Wait(std::chrono::seconds(5)), "the kernel ends it in its time");
}

}  // namespace gantry::runc
