// SPDX-License-Identifier: Apache-2.0
//
// Programs that an engine asks as `AskProgram` does, and that are its keeper's: what hangs in the
// kernel holds up nobody's wait, and what an engine that was killed has left the next one ends.
#pragma once

#include <memory>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/process/ask_program.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

inline constexpr const char* kCanaryTag = "kvm-canary";

/// Thread: any.
class CanaryPrograms {
 public:
  /// `context`: the backend's own, of `SandboxBackend::Attach`.
  static Result<std::unique_ptr<CanaryPrograms>> Make(SandboxContext& context);
  CanaryPrograms(const CanaryPrograms&) = delete;
  CanaryPrograms& operator=(const CanaryPrograms&) = delete;
  ~CanaryPrograms() = default;

  /// What the program has written by its end, or within the limit, or up to `max_bytes`; then it is
  /// killed, and its end is not waited for. It has no network and no capability, and no input. A
  /// path below /proc/self is this process's. Errors: the program cannot be started;
  /// kUnavailable: `Stop` was called. Blocks: up to the limit. One at a time.
  Result<std::string> Ask(const ProgramQuestion& question);

  /// For good: what runs is killed, and who asks is told at once. Blocks: never.
  void Stop();

 private:
  CanaryPrograms(SandboxContext& context, UniqueFd stop)
      : context_(context), stop_(std::move(stop)) {}

  Result<std::shared_ptr<HostProcess>> Start(const ProgramQuestion& question, UniqueFd output);
  /// False: it has been stopped.
  bool Keep(std::shared_ptr<HostProcess> process);
  Result<std::string> Read(int pipe_end, const ProgramQuestion& question) const;

  SandboxContext& context_;
  /// Readable when it has been stopped.
  const UniqueFd stop_;
  Mutex mutex_;
  bool stopped_ GANTRY_GUARDED_BY(mutex_) = false;
  std::shared_ptr<HostProcess> running_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::vmm
