// SPDX-License-Identifier: Apache-2.0
//
// Starting the sentry of a sandbox, with the gofer of its root container where it needs one, by
// either launcher, and what is to be kept of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/launch/launcher.h"
#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {

/// The process that serves the root container's files; null: it needs none.
using GoferProcess = std::shared_ptr<HostProcess>;

/// When it fails nothing is left of it. Blocks: for a tenth of a second, or up to the pod's
/// deadline for a step.
Result<GoferProcess> StartSentry(Pod& pod, SentryRequest wanted);

/// Ends what `StartSentry` has started, in this engine or the one before. `gofer`: as it gave
/// it. `bundle`: where it was started, unless the pod knows another. Again: success. Errors:
/// kDeadlineExceeded: the kernel has not ended it yet. Blocks: until they have ended.
Status RemoveSentry(Pod& pod, const GoferProcess& gofer, const std::string& bundle);

/// The name of a gofer's spawn. For one of an engine before.
std::string GoferTag(const std::string& container);
inline constexpr const char* kBootTag = "boot";
/// In the bundle.
inline constexpr const char* kSocketName = "sentry.sock";

/// runsc's flags as this build takes them. Errors: kInvalidArgument naming one that it does
/// not have.
Result<std::vector<std::string>> FlagsFor(const Runsc& runsc, const Flags& flags,
                                          const std::string& root);

}  // namespace gantry::gvisor
