// SPDX-License-Identifier: Apache-2.0
//
// A sentry: the kernel of a sandbox, one process for each pod. It is booted with the pod's
// root container and waits to be told to start it.
// Source: runsc 20240729 and 2026-09, runsc/cmd/boot.go, runsc/sandbox/sandbox.go.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/launch/child.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

struct BootRequest {
  const LaunchPlace& place;
  const Spec& spec;
  const UniqueFd& program;
  const Flags& flags;
  /// As `MakeBoundedLog`.
  const UniqueFd& log;
  /// Of the sandbox.
  std::string id;
  /// Of what an operator has asked for.
  LogOwner log_owner{};
  /// Of the control server.
  std::string socket;
  std::string tag;
  /// `NAME=VALUE`; empty: it has none.
  std::string environment{};
  /// For each mount: a gofer's connection or an image, in the mounts' order.
  std::vector<UniqueFd> files{};
  std::vector<UniqueFd> filestores{};
  /// From the gofer; none where no gofer serves it.
  UniqueFd mounts{};
  /// Of the root container; none is /dev/null.
  std::array<UniqueFd, 3> stdio{};
  /// `stdio` is a terminal, three times, which becomes the controlling one.
  bool terminal = false;
  /// The network namespace to be in; none: a new one, or the node's.
  UniqueFd netns{};
  bool node_network = false;
};

struct Boot {
  std::shared_ptr<HostProcess> process;
  /// A byte comes when its control server is up.
  UniqueFd started;
  /// Where its panics go, if not to its log.
  std::string panic_log{};
};

/// Errors: as `SandboxContext::Spawn`; kAlreadyExists for the socket. When it fails no
/// process is left. Blocks: briefly.
Result<Boot> StartBoot(SandboxContext& context, BootRequest wanted);

/// `log`: as in its request. Errors: kInternal with its last words, where it has ended;
/// kDeadlineExceeded. Blocks: up to `deadline`.
Status AwaitBoot(const Boot& boot, const UniqueFd& log, Deadline deadline);

}  // namespace gantry::gvisor
