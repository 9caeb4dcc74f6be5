// SPDX-License-Identifier: Apache-2.0
//
// What init and exec have in common: a name in the sandbox, streams, an end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/process.h>

#include "tests/contract/remote/sandbox.h"

namespace gantry::remote {

/// Thread: workers.
class RemoteProcess {
 public:
  /// `container` is set for an init.
  RemoteProcess(ProcessContext& process, ContainerContext* container,
                std::shared_ptr<SandboxParts> parts);
  RemoteProcess(const RemoteProcess&) = delete;
  RemoteProcess& operator=(const RemoteProcess&) = delete;
  ~RemoteProcess();

  /// A call about this process.
  Json Call(const char* what) const;
  /// Errors: kUnavailable where the sandbox is not there.
  Result<Message> Ask(const Json& call, const std::vector<int>& fds = {}) const;

  /// Has the sandbox make the process (`call`), with streams or a terminal.
  Status Make(const Json& call, bool terminal);
  /// `saved`: what came back of what `Make` has kept. Errors: kAborted: the sandbox does not know
  /// it; kDataLoss: something else came back.
  Status Recover(const std::string& saved);
  Status Kill(uint32_t signal) const;
  Status ConsoleSignal(uint32_t signal) const;
  /// Again: allowed.
  Status Delete();

 private:
  Status PassConsole(Message answer);
  /// Of no other process, and no text.
  std::string ToKeep() const;

  ProcessContext& process_;
  const ProcessName name_;
  const std::shared_ptr<SandboxParts> parts_;
};

}  // namespace gantry::remote
