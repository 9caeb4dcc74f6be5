// SPDX-License-Identifier: Apache-2.0
//
// A gofer: the process that serves a container's files to the sentry, over one connection
// for each mount. It resolves the mounts of the spec inside the root file system and tells
// them, then it serves until its connections close.
// Source: runsc 20240729 and 2026-09, runsc/cmd/gofer.go, runsc/container/container.go.
#pragma once

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

struct GoferRequest {
  const LaunchPlace& place;
  const Spec& spec;
  const UniqueFd& program;
  /// It asks for the mounts that it cannot open, on a socket. Of releases since 2024-11.
  bool asks_for_mounts = false;
  /// Of the container; releases since 2026-05 want it.
  std::string id;
  /// What an operator has asked for.
  const LogFlags& logs;
  LogOwner log_owner;
  std::string tag;
};

struct Gofer {
  std::shared_ptr<HostProcess> process;
  /// For the sentry: one for each mount that it serves, in their order.
  std::vector<UniqueFd> connections;
  /// What it has to tell of the mounts; it has told all when that ends. For whoever reads it:
  /// the sentry, of its root container, else `ReadMounts`.
  UniqueFd mounts;
  /// On which it asks, if it does.
  UniqueFd questions;
  /// As `MakeBoundedLog`. Of use while it starts.
  UniqueFd log;
};

/// Errors: as `SandboxContext::Spawn`. When it fails nothing is left. Blocks: briefly.
Result<Gofer> StartGofer(SandboxContext& context, const GoferRequest& wanted);

/// The mounts as it has resolved them, a JSON array; answers what it asks meanwhile.
/// `wanted`: that of its start. Errors: kInternal with the gofer's last words, where it has
/// ended; kDeadlineExceeded. Blocks: up to `deadline`.
Result<std::string> ReadMounts(const Gofer& gofer, const GoferRequest& wanted, Deadline deadline);
/// The same where the sentry reads the mounts: returns when it can ask no more.
Status AnswerQuestions(const Gofer& gofer, const GoferRequest& wanted, Deadline deadline);

/// `lisafs:self,lisafs:none`: all mounts of the spec.
std::string MountConfs(const Spec& spec);

}  // namespace gantry::gvisor
