// SPDX-License-Identifier: Apache-2.0
//
// The root of a pod that brings no pause container: a program of gantry's own, in an image in
// memory.
#pragma once

#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

#include "plugins/gvisor/pause/pause_spec.h"
#include "plugins/gvisor/pod/pod.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// What the pod asks of it.
PauseSpecRequest OwnRootOf(const SandboxRequest& request, const PodConfig& config);

/// `bundle`: a directory that exists. Errors: as `MakeSpec`.
Result<Spec> MakeOwnRootSpec(PauseSpecRequest asked, const std::string& bundle,
                             const Overlay& overlay);

/// Gives a pod with such a root its name, after its start: by a process that ends at once.
/// Errors: as for an exec; kInternal with the number of the error that it got.
/// Blocks: for some milliseconds, up to `deadline`.
Status SetHostname(Pod& pod, const std::string& name, Deadline deadline);

}  // namespace gantry::gvisor
