// SPDX-License-Identifier: Apache-2.0
//
// The launcher for a build whose internal commands are of no use to gantry: one `runsc create` for
// each pod, which starts gofer and sentry and ends. They then are the keeper's children as those
// that gantry starts itself, and all else is as with these: the command leaves the network and the
// start to whoever calls the sentry.
//
// It keeps its state in a folder of its own in the bundle. Nothing but that folder's name, which
// each of its processes has among its arguments, is needed to remove all that it has begun,
// wherever it was cut short.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/launch/runsc.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

struct CreateRequest {
  const Runsc& runsc;
  const Spec& spec;
  const Flags& flags;
  /// Of the sandbox.
  std::string id;
  /// Absolute.
  std::string bundle;
  /// As `MakeBoundedLog`: the command's, the sentry's and the gofer's are one.
  const UniqueFd& log;
  std::vector<std::string> cgroups;
  /// Of the root container. What runsc says of a failure goes to the last of them, too.
  std::array<UniqueFd, 3> stdio;
  /// In place of the root's files: an image.
  UniqueFd image{};
};

struct Created {
  std::shared_ptr<HostProcess> sentry;
  /// Null: none is needed.
  std::shared_ptr<HostProcess> gofer;
  /// Of the control server.
  std::string socket;
};

/// Errors: kInvalidArgument naming a flag that the build does not have; kInternal with the
/// command's own words; kDeadlineExceeded; as `SandboxContext::Spawn`. When it fails
/// `RemoveCreated` is to be called. Blocks: up to `deadline`.
Result<Created> RunCreate(SandboxContext& context, CreateRequest wanted, Deadline deadline);

/// Ends what runs of it, of this engine or one before, and removes what is left in the bundle,
/// also where there is nothing. Errors: kDeadlineExceeded: the kernel has not ended it yet.
/// Blocks: up to some `limit`s.
Status RemoveCreated(SandboxContext& context, const std::string& bundle,
                     std::chrono::milliseconds limit);

}  // namespace gantry::gvisor
