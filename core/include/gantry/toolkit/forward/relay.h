// SPDX-License-Identifier: Apache-2.0
//
// The process on the host that carries the bytes of a pod's forwarded connections, between
// TCP and the sandbox: gantry-forward (core/toolkit/forward/program). A sandbox with a network
// stack of its own takes no TCP sockets of the host, so someone must; a process of its own goes on
// when the engine does not, and holds up no loop. It is there from a pod's first forwarded
// connection until the pod's end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

namespace gantry::forward {

/// Where it is destroyed, the process goes on; `Failed` is not running then.
/// Thread: any, one at a time.
class Relay {
 public:
  /// Called on a worker with the errno where the server in the sandbox could not be reached;
  /// as `Report` has it. Port 0: it could not give up its rights, and serves nobody.
  using Failed = std::function<void(uint16_t port, int sys_errno)>;

  /// `program`: gantry-forward. `cgroups`: to be born in.
  /// Errors: as `SandboxContext::Spawn` and `Store`. Thread: workers.
  static Result<std::unique_ptr<Relay>> Start(SandboxContext& context, const UniqueFd& program,
                                              std::vector<std::string> cgroups, Failed failed);
  /// That of an engine before; once. Null: there is none. Thread: workers.
  static std::unique_ptr<Relay> Recover(SandboxContext& context, Failed failed);

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  ~Relay() { EndWatch(); }

  /// Carries bytes between `client` and what has the other end of `sandbox`, once that has said
  /// that it is connected. Both stay the caller's, who closes them. `framed`: as `Handover` has it.
  /// Errors: kUnavailable: it has ended; kResourceExhausted: it is behind. Blocks: never.
  Status Take(const UniqueFd& client, const UniqueFd& sandbox, uint16_t port, bool framed);

  /// Ends the process, and its connections. Again: success.
  /// Errors: kDeadlineExceeded. Thread: workers. Blocks: up to `limit`.
  Status End(SandboxContext& context, std::chrono::milliseconds limit);

 private:
  Relay(std::shared_ptr<HostProcess> process, UniqueFd control, Failed failed)
      : process_(std::move(process)), control_(std::move(control)), failed_(std::move(failed)) {}

  Status WatchReports(SandboxContext& context);
  void OnReport();
  void EndWatch();

  const std::shared_ptr<HostProcess> process_;
  const UniqueFd control_;
  const Failed failed_;
  Mutex mutex_;
  /// None: it has ended.
  std::unique_ptr<Watch> watch_ GANTRY_GUARDED_BY(mutex_);
};

/// gantry-forward, beside the plugins. Errors: kFailedPrecondition.
Result<std::string> FindForwardProgram();

}  // namespace gantry::forward
