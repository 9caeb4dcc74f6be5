// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/compiler.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/wasm/cache/answer.h"
#include "plugins/wasm/compile/calls.h"
#include "plugins/wasm/compile/protocol.h"

namespace gantry::wasm {
namespace {

constexpr compile::CallFilter kFilter = compile::MakeCallFilter(true);
/// As containerd's pause image.
constexpr uint32_t kNobody = 65535;
/// First to go.
constexpr int kOomScore = 1000;
/// A killed process that has not ended by then is stuck in the kernel.
constexpr std::chrono::seconds kDying{10};
/// The compiler's line has no more bytes.
constexpr size_t kMaxLine = 256;
constexpr uint64_t kDescribeMemory = uint64_t{256} << 20;

rlimit Limit(uint64_t value) { return {value, value}; }

Result<UniqueFd> OutputFile(const char* name) { return CreateSealableMemfd(name, MemfdUse::kRead); }

/// Whole seconds, at least one.
uint64_t SecondsOf(std::chrono::milliseconds time) {
  return static_cast<uint64_t>(std::max<int64_t>(1, (time.count() + 999) / 1000));
}

/// `fixed` and for each of `bytes` so much, up to `most`.
uint64_t Allowed(uint64_t fixed, uint64_t per_byte, uint64_t bytes, uint64_t most) {
  return bytes > most / std::max<uint64_t>(per_byte, 1) ? most
                                                        : std::min(most, fixed + per_byte * bytes);
}

uint64_t MemoryFor(const ModuleBytes& module, const CompileLimits& limits) {
  const uint64_t for_functions = limits.memory_per_function * module.functions;
  return Allowed(limits.memory + for_functions, limits.memory_per_byte, module.size,
                 limits.max_memory);
}

/// That the module is not to blame.
std::unexpected<Error> NotTried(Error error) {
  error.code = Code::kUnavailable;
  return std::unexpected(std::move(error).Within("run gantry-wasm-compile"));
}

}  // namespace

struct Compiler::Run {
  std::string mode;
  std::chrono::milliseconds time{};
  uint64_t memory = 0;
  uint64_t output = 0;
  std::vector<std::pair<UniqueFd, int>> fds{};
};

Result<std::shared_ptr<HostProcess>> Compiler::Start(Run& run) {
  SpawnRequest request;
  GANTRY_TRY(request.program, program_());
  request.argv = {"gantry-wasm-compile", run.mode};
  request.fds = std::move(run.fds);
  request.cgroups = limits_.cgroups;
  request.new_namespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  request.empty_root = true;
  request.uid = kNobody;
  request.gid = kNobody;
  request.no_new_privs = true;
  request.capabilities = 0;
  request.seccomp.assign(kFilter.code, kFilter.code + kFilter.size);
  // The clock's limit is the caller's; this one holds where he ends.
  request.rlimits = {{RLIMIT_AS, Limit(run.memory)},
                     {RLIMIT_FSIZE, Limit(run.output)},
                     {RLIMIT_CPU, Limit(SecondsOf(run.time) + 1)},
                     {RLIMIT_CORE, Limit(0)}};
  request.oom_score_adj = kOomScore;
  // By which an engine after this one finds it, and ends it.
  request.tag = Format("{}-{}", run.mode, RandomName(8));
  return context_.Spawn(std::move(request));
}

Result<WaitStatus> Compiler::RunProgram(Run& run) {
  auto process = Start(run);
  if (!process) {
    return NotTried(std::move(process).error());
  }
  {
    const MutexLock lock(mutex_);
    running_.push_back(*process);
    if (stopped_) {
      IgnoreError((*process)->Signal(SIGKILL), "it has ended");
    }
  }
  Result<WaitStatus> ended = (*process)->Wait(run.time);
  if (!ended) {
    IgnoreError((*process)->Signal(SIGKILL), "it has ended");
    IgnoreError((*process)->Wait(kDying), "it has been killed");
  }
  const MutexLock lock(mutex_);
  std::erase(running_, *process);
  if (!ended && ended.error().code != Code::kDeadlineExceeded) {
    return NotTried(std::move(ended).error());
  }
  return ended;
}

Result<std::string> Compiler::Describe(std::chrono::milliseconds limit) {
  Run run{.mode = "describe", .time = limit, .memory = kDescribeMemory, .output = kMaxLine};
  GANTRY_TRY(const UniqueFd output, OutputFile("wasm-compiler"));
  GANTRY_TRY(UniqueFd passed, output.Duplicate());
  run.fds.emplace_back(std::move(passed), STDOUT_FILENO);
  const Result<WaitStatus> ended = RunProgram(run);
  if (!ended) {
    return Fail(ended.error().code, "ask the wasm compiler what it is: {}", ended.error().message);
  }
  GANTRY_TRY(const std::string text, ReadAt(output.get(), 0, kMaxLine));
  if (ended->raw != 0 || !IsCompilerLine(text)) {
    return Fail(Code::kUnavailable, "ask the wasm compiler what it is: it {} and says '{}'",
                EndWords(*ended), Printable(text));
  }
  return text.substr(0, text.size() - 1);
}

Result<Compiler::Compiled> Compiler::Compile(const ModuleBytes& module) {
  Run run{
      .mode = "compile",
      .time = limits_.time,
      .memory = MemoryFor(module, limits_),
      .output = Allowed(limits_.output, limits_.output_per_byte, module.size, uint64_t{1} << 31)};
  const CompileBounds bounds{.time = run.time, .memory = run.memory, .output = run.output};
  auto artifact = OutputFile("wasm-artifact");
  auto answer = OutputFile("wasm-answer");
  auto errors = OutputFile("wasm-errors");
  for (auto* file : {&artifact, &answer, &errors}) {
    if (!*file) {
      return NotTried(std::move(*file).error());
    }
  }
  const std::pair<const UniqueFd*, int> passed[] = {{&module.file, compile::kModule},
                                                    {&*artifact, compile::kArtifact},
                                                    {&*answer, compile::kAnswer},
                                                    {&*errors, STDERR_FILENO}};
  for (const auto& [file, number] : passed) {
    auto copy = file->Duplicate();
    if (!copy) {
      return NotTried(std::move(copy).error());
    }
    run.fds.emplace_back(std::move(*copy), number);
  }
  const Result<WaitStatus> ended = RunProgram(run);
  if (!ended && ended.error().code != Code::kDeadlineExceeded) {
    return std::unexpected(ended.error());
  }
  const CompileEnd end{.status = ended ? std::optional(*ended) : std::nullopt,
                       .artifact = *artifact,
                       .answer = *answer,
                       .errors = *errors};
  GANTRY_TRY(const Kind kind, ReadAnswer(end, bounds));
  // Its only process has ended: nobody writes to it any more.
  GANTRY_CHECK_OK(SealMemfd(artifact->get()));
  GANTRY_TRY(const uint64_t bytes, FileSize(artifact->get()));
  GANTRY_TRY(UniqueFd sealed, ReopenForReading(*artifact));
  return Compiled{.artifact = std::move(sealed), .bytes = bytes, .kind = kind};
}

void Compiler::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  for (const auto& process : running_) {
    IgnoreError(process->Signal(SIGKILL), "it has ended");
  }
}

}  // namespace gantry::wasm
