// SPDX-License-Identifier: Apache-2.0
//
// One hook of a container's OCI spec: a program of the host that is told the container's state and
// waited for.
// Source: opencontainers/runtime-spec 1.2, config.md (POSIX-platform hooks), runtime.md (state).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>

namespace gantry::hooks {

/// Thread: any; plain data.
struct Hook {
  /// `createRuntime` and so on, for errors.
  std::string kind;
  std::string path;
  /// With its own name as the first; none: that is its path.
  std::vector<std::string> args;
  std::vector<std::string> env;
  /// None: there is only that of the call.
  std::optional<std::chrono::seconds> timeout;
};

/// What a spec has of them.
struct Hooks {
  std::vector<Hook> prestart;
  std::vector<Hook> create_runtime;
  /// In the namespaces of the container's files, and in those of its processes.
  std::vector<Hook> create_container;
  std::vector<Hook> start_container;
  std::vector<Hook> poststart;
  std::vector<Hook> poststop;
};

/// Errors: kInvalidArgument naming the hook and what it must be.
Result<Hooks> ReadHooks(const std::string& spec_json);

/// What a hook is started for.
struct HookPlace {
  SandboxContext& context;
  /// Its working directory; what it says is in a file there.
  std::string bundle;
  /// For `SandboxContext::FindSpawned`.
  std::string tag;
};

/// The keeper starts it, in the host's namespaces. `state`: what it reads, JSON. Errors:
/// kInvalidArgument: there is no such program; as `SandboxContext::Spawn`. Blocks: briefly.
Result<std::shared_ptr<HostProcess>> StartHook(const Hook& hook, const std::string& state,
                                               const HookPlace& place);

/// Its end, which must be a good one; one that takes too long is killed. What it has said is
/// removed. Errors: kInternal with its status and the last that it said; kDeadlineExceeded.
/// Blocks: up to its timeout, or until the call has just time left to undo what it has done.
Status AwaitHook(const Hook& hook, HostProcess& process, const HookPlace& place);

/// Ends one that nobody waits for any more.
void EndHook(HostProcess& process);

/// What a hook has said that nobody waits for. Again: success.
Status RemoveHookLog(const std::string& bundle);

}  // namespace gantry::hooks
