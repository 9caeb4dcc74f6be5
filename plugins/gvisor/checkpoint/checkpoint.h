// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint and restore of a sandbox. A sentry saves all that is in it, and comes up from an
// image in place of starting its root, so both are the root container's alone.
#pragma once

#include <string>

#include <gantry/container.h>
#include <gantry/error.h>

#include "plugins/gvisor/checkpoint/image.h"
#include "plugins/gvisor/launch/runsc.h"
#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

/// Of memory that is written out or read back, in steps of starting a sandbox.
inline constexpr int kImageSteps = 10;

/// Saves the pod's sandbox to `request.path`. It stands still meanwhile, and goes on if it ran;
/// with `exit` it is killed where it stands. On failure no file stays and it goes on.
/// Errors: kInvalidArgument: no path; kFailedPrecondition: there are further containers, which
/// could not be restored; kUnavailable: it has ended; of the file system; the sentry's.
/// Blocks: as long as the call may, at most `kImageSteps`.
Status SaveSandbox(Pod& pod, const CheckpointRequest& request);

/// For a container that is no sandbox's root: why not.
std::unexpected<Error> NotTheRoot(const Pod& pod, std::string_view attempted,
                                  const ContainerId& container);

/// Before a sandbox is booted to be restored from there by this build. Errors: as `OpenImage`;
/// kInvalidArgument: no image of a sandbox with one container; kFailedPrecondition: of another
/// build.
Status CheckImage(const std::string& directory, const Runsc& runsc);

}  // namespace gantry::gvisor
