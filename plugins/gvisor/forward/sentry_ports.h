// SPDX-License-Identifier: Apache-2.0
//
// The end in the sentry of forwarded ports (gantry/toolkit/forward/port_forward.h).
//
// Each connection has a process of gantry's for it, executed in the root container
// (program/forward.cc). The sentry has a call for that, containerManager.PortForward,
// which is not used: it ends the server's connection when the client has sent its last byte,
// before the answer, and it connects with the lock held that each other call on a container
// needs: where a server takes no connections, the whole pod can be neither signalled nor
// stopped for two minutes. Seen with runsc 2026-09, runsc/boot/loader.go, portForward.
//
// A checkpoint of the sentry fails while there is such a process, as its program is a file of
// the host's. Whoever makes one ends the connections before: `PortForward::Suspend`, `End`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/sentry/sentry.h"

namespace gantry::gvisor {

/// Thread: any.
class SentryPorts {
 public:
  /// `root`: the container in which processes are executed, the sentry's root. `limit`: of a call
  /// to the sentry.
  SentryPorts(SandboxContext& context, std::shared_ptr<Sentry> sentry, std::string root,
              std::chrono::milliseconds limit)
      : context_(context), sentry_(std::move(sentry)), root_(std::move(root)), limit_(limit) {}

  /// As `forward::PortForwardRequest::connect`. Blocks: up to the limit.
  Result<UniqueFd> Connect(uint16_t port, const UniqueFd& program) const;

  /// The processes in the sentry that `Connect` has executed, also those of an engine before.
  /// Errors: the sentry's.
  Result<std::vector<int32_t>> Serving(Deadline deadline) const;
  /// Ends these, once their connections have ended: the sentry has to run. Errors:
  /// kDeadlineExceeded; the sentry's. Blocks: up to `deadline`.
  Status End(const std::vector<int32_t>& pids, Deadline deadline) const;

 private:
  void ForgetWhenEnded(Sentry::Executed executed, Deadline deadline) const;

  SandboxContext& context_;
  const std::shared_ptr<Sentry> sentry_;
  const std::string root_;
  const std::chrono::milliseconds limit_;
};

}  // namespace gantry::gvisor
