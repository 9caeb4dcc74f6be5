// SPDX-License-Identifier: Apache-2.0
//
// One module compiled in a process that has nothing but its bytes. Who sends a module chooses what
// the compiler reads; so it runs as nobody, in an empty root and namespaces of its own, without
// capabilities, behind a list of some thirty system calls, with limits of memory, time and output,
// and is the first to go when the node has no memory left. What it says is looked at as anybody's
// would be. All that somebody who has taken it over can do is to choose what the containers of his
// own module run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/kind.h"
#include "plugins/wasm/module/bytes.h"

namespace gantry::wasm {

/// Of one compile.
struct CompileLimits {
  /// On the clock, and of a processor.
  std::chrono::milliseconds time = std::chrono::minutes(2);
  /// Bytes of address space: the first for any module, the second for each byte of it, and the
  /// third for each of its functions, of which small ones cost more than their bytes say.
  uint64_t memory = uint64_t{128} << 20;
  uint64_t memory_per_byte = 40;
  uint64_t memory_per_function = uint64_t{8} << 10;
  uint64_t max_memory = uint64_t{2} << 30;
  /// Bytes of the artifact, in the same way.
  uint64_t output = uint64_t{16} << 20;
  uint64_t output_per_byte = 16;
  /// Directories of cgroups that it is born in, as of `SpawnRequest`.
  std::vector<std::string> cgroups;
};

/// Thread: any, several at a time.
class Compiler {
 public:
  struct Compiled {
    /// Sealed, open for reading.
    UniqueFd artifact;
    uint64_t bytes = 0;
    Kind kind = Kind::kModule;
  };

  /// gantry-wasm-compile, for `SpawnRequest::program`.
  using OpenProgram = std::function<Result<UniqueFd>()>;

  /// Owner: `context` is the caller's and outlives this.
  Compiler(SandboxContext& context, OpenProgram program, CompileLimits limits)
      : context_(context), program_(std::move(program)), limits_(std::move(limits)) {}

  /// The compiler's line: what an artifact needs of who loads it.
  /// Errors: kUnavailable: it cannot be started, or gives no line; kDeadlineExceeded: `limit` is
  /// over. Blocks: up to `limit`.
  Result<std::string> Describe(std::chrono::milliseconds limit);

  /// Errors: kInvalidArgument: the module is not valid, with the compiler's words;
  /// kResourceExhausted: it takes more time, memory or output than it may; kInternal: the compiler
  /// crashed over it, or answers what is no answer; kUnavailable: that says nothing about the
  /// module: it was killed, or could not be started. Blocks: up to the limit of time.
  Result<Compiled> Compile(const ModuleBytes& module);

  /// What runs is killed, and nothing is started any more. Again: nothing. Blocks: never.
  void Stop();

 private:
  struct Run;

  Result<WaitStatus> RunProgram(Run& run);
  Result<std::shared_ptr<HostProcess>> Start(Run& run);

  SandboxContext& context_;
  const OpenProgram program_;
  const CompileLimits limits_;
  Mutex mutex_;
  bool stopped_ GANTRY_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<HostProcess>> running_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::wasm
