// SPDX-License-Identifier: Apache-2.0
//
// The backend's side of one sandbox process: calls, and what it reports.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/contract/remote/message.h"

namespace gantry::remote {

/// Names a process: container and exec, the latter empty for an init.
using ProcessName = std::pair<std::string, std::string>;

/// Thread: any. Must be destroyed on a worker or after `Close`.
class Link {
 public:
  Link(SandboxContext& context, UniqueFd door) : context_(context), door_(std::move(door)) {}

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  ~Link() { Close(); }

  /// One call, on a connection of its own. Errors: what the sandbox answers;
  /// kUnavailable: it is gone. Blocks: up to half a minute.
  Result<Message> Ask(const Json& call, const std::vector<int>& fds = {});

  /// Begins to listen to reports; they go to whom `Register` has named.
  Status Listen();
  /// No report is passed on when this has returned.
  void Close();

  /// `container` is set for an init, which may run out of memory.
  void Register(const ProcessName& name, ProcessContext& process, ContainerContext* container);
  /// `process` hears no more: when this returns it may go.
  void Unregister(const ProcessName& name);

  /// Tells whom it is about.
  void PassOn(const Json& report);
  /// Everything that is registered has ended with its sandbox.
  void SandboxEnded();

 private:
  struct Listener {
    ProcessContext* process;
    ContainerContext* container;
  };

  void OnReadable();

  SandboxContext& context_;
  const UniqueFd door_;

  /// Guards what follows. It is held while an end is passed on, which never
  /// waits: so nobody can unregister in the middle of it.
  std::mutex mutex_;
  std::map<ProcessName, Listener> listeners_;
  UniqueFd reports_;
  std::unique_ptr<Watch> watch_;
  bool closed_ = false;
};

/// How something that ended with its sandbox has ended, now.
ExitStatus KilledNow();

}  // namespace gantry::remote
