// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc_program.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <gantry/format.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/config/collector_endpoint.h"
#include "core/link/own_names.h"
#include "core/log/log.h"
#include "core/os/listen.h"

namespace gantry::engine {
namespace {

constexpr std::string_view kAddressOption = "--address=";
constexpr int kListenFd = 3;
constexpr size_t kMaxCommandLine = size_t{64} << 10;
constexpr Backoff::Terms kRestarts{.no_event = "a program that cannot run ends at once, each time",
                                   .first = std::chrono::milliseconds(100),
                                   .longest = std::chrono::seconds(10)};
/// One that has run for so long did not end of how it was started.
constexpr std::chrono::seconds kRanWell(60);
/// It gives its last calls ten seconds.
constexpr std::chrono::seconds kEndLimit(15);

std::string ProcFile(const HostProcess& process, const char* name) {
  return Format("/proc/{}/{}", process.pid().value, name);
}

/// What follows `option` in a command line as /proc has it.
std::string ArgumentOf(std::string_view line, std::string_view option) {
  const size_t at = line.find('\0' + std::string(option));
  if (at == std::string_view::npos) {
    return {};
  }
  line.remove_prefix(at + 1 + option.size());
  return std::string(line.substr(0, line.find('\0')));
}

/// A descriptor of another process. Source: pidfd_getfd(2), Linux 5.6.
Result<UniqueFd> DescriptorOf(const ProcessId& process, int number) {
  GANTRY_TRY(const UniqueFd pidfd, OpenPidfd(process));
  const auto fd = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0));
  if (fd < 0) {
    return FailErrno(errno, "take descriptor {} of process {}", number, process.pid);
  }
  return UniqueFd(fd);
}

}  // namespace

GrpcProgram::GrpcProgram(async::Loop& loop, async::WorkerPool& pool,
                         keeper_client::HostProcesses& processes, const config::Config& config,
                         std::string run_dir, std::string program)
    : loop_(loop),
      pool_(pool),
      processes_(processes),
      config_(config.grpc),
      tracing_(config.tracing),
      run_dir_(std::move(run_dir)),
      program_(std::move(program)),
      pause_(kRestarts) {}

bool GrpcProgram::IsWanted() const {
  return !config_.address.empty() || !tracing_.endpoint.empty();
}

std::vector<std::string> GrpcProgram::Arguments() const {
  std::vector<std::string> arguments = {program_, "--run-dir=" + run_dir_,
                                        "--sandboxes-dir=" + run_dir_ + "-sandboxes",
                                        "--containerd=" + config_.containerd};
  if (!config_.address.empty()) {
    arguments.push_back(std::string(kAddressOption) + config_.address);
    arguments.push_back(Format("--listen-fd={}", kListenFd));
  }
  if (!tracing_.endpoint.empty()) {
    // The configuration was read with it: it is one.
    arguments.push_back("--export-to=" + config::CollectorTarget(tracing_.endpoint).value_or(""));
  }
  return arguments;
}

void GrpcProgram::Begin() {
  keeper_client::WatchedProcessPtr running = processes_.FindSpawned(link::kGrpcProcess);
  if (running && !running->Ended()) {
    async::Start(TakeUp(std::move(running)));
  } else if (IsWanted()) {
    async::Start(Start());
  }
}

std::string GrpcProgram::Purpose() const {
  const char* const both = config_.address.empty() || tracing_.endpoint.empty() ? "" : " and ";
  return (config_.address.empty() ? "" : Format("calls at '{}'", config_.address)) + both +
         (tracing_.endpoint.empty() ? "" : Format("spans to '{}'", tracing_.endpoint));
}

Result<GrpcProgram::Running> GrpcProgram::Look(const keeper_client::WatchedProcess& process) const {
  Running running;
  GANTRY_TRY(const std::string program, ReadLink(ProcFile(process, "exe")));
  std::error_code error;
  running.same_program = program == std::filesystem::canonical(program_, error).string();
  GANTRY_TRY(const std::string told, ReadFile(ProcFile(process, "cmdline"), kMaxCommandLine));
  std::string wanted;
  for (const std::string& argument : Arguments()) {
    wanted += argument + '\0';
  }
  running.same_arguments = told == wanted;
  running.address = ArgumentOf(told, kAddressOption);
  return running;
}

async::Task<void> GrpcProgram::TakeUp(keeper_client::WatchedProcessPtr process) {
  const Running running = (co_await pool_.Run([&] { return Look(*process); })).value_or(Running{});
  const bool wanted = IsWanted() && running.same_arguments;
  if (wanted && !config_.address.empty()) {
    if (Result<UniqueFd> listener = DescriptorOf(process->id(), kListenFd)) {
      listener_ = std::move(*listener);
    }
  }
  Watch(process);
  if (running.address != config_.address) {
    left_ = running.address;
  }
  if (!wanted || !running.same_program) {
    LogInfo("gantry-grpc, pid {}, is ended: it is another {}", process->pid().value,
            wanted ? "version" : "configuration's");
    End();
  }
}

async::Task<void> GrpcProgram::RemoveLeft() {
  const std::string path = std::exchange(left_, {});
  const Status removed = co_await pool_.Run([&path] { return os::RemoveLeftSocket(path); });
  if (!removed) {
    LogWarning("remove the socket '{}', which is not configured any more: {}", path,
               removed.error().message);
  }
}

void GrpcProgram::End() {
  IgnoreError(process_->Signal(SIGTERM), "it has ended");
  loop_.After(kEndLimit, [ending = process_] {
    if (!ending->Ended()) {
      IgnoreError(ending->Signal(SIGKILL), "it has ended just now");
    }
  });
}

async::Task<void> GrpcProgram::Start() {
  started_at_ = loop_.Now();
  const Status started = co_await Spawn();
  if (started) {
    LogInfo("gantry-grpc runs, pid {}, for {}", process_->pid().value, Purpose());
    co_return;
  }
  LogError("start gantry-grpc for {}: {}", Purpose(), started.error().message);
  co_await async::Sleep(loop_, pause_.Next());
  async::Start(Start());
}

Result<SpawnRequest> GrpcProgram::MakeRequest() {
  SpawnRequest request;
  request.argv = Arguments();
  if (!config_.address.empty()) {
    if (!listener_) {
      GANTRY_TRY(listener_, os::ListenWherePlaced(config_.address));
    }
    GANTRY_TRY(UniqueFd listener, listener_.Duplicate());
    request.fds.emplace_back(std::move(listener), kListenFd);
  }
  const std::string log = run_dir_ + "/grpc.log";
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
      return FailErrno(errno, "open '{}'", log);
    }
    request.fds.emplace_back(std::move(file), number);
  }
  // Whose it is, for who looks for processes.
  request.env = {"GANTRY_RUN_DIR=" + run_dir_};
  request.tag = link::kGrpcProcess;
  return request;
}

async::Task<Status> GrpcProgram::Spawn() {
  GANTRY_CO_TRY(SpawnRequest request, co_await pool_.Run([this] { return MakeRequest(); }));
  GANTRY_CO_TRY(keeper_client::WatchedProcessPtr process,
                co_await processes_.Spawn(std::move(request)));
  Watch(std::move(process));
  co_return Status();
}

void GrpcProgram::Watch(keeper_client::WatchedProcessPtr process) {
  process_ = std::move(process);
  process_->MarkBound(this);
  process_->OnEnd([this](WaitStatus status) {
    const keeper_client::WatchedProcessPtr ended = std::move(process_);
    processes_.Release(ended->id());
    LogInfo("gantry-grpc, pid {}, has ended with {}", ended->pid().value, status.code());
    if (!left_.empty()) {
      async::Start(RemoveLeft());
    }
    if (!IsWanted()) {
      return;
    }
    if (loop_.Now() - started_at_ > kRanWell) {
      pause_ = Backoff(kRestarts);
    }
    loop_.After(pause_.Next(), [this] { async::Start(Start()); });
  });
}

}  // namespace gantry::engine
