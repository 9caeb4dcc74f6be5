// SPDX-License-Identifier: Apache-2.0
//
// The files behind a container's writable layers: sparse, made before the gofer starts, and
// removed with the container, since the next one of that name would be refused.
// Source: runsc 20240729 and 2026-09, runsc/container/container.go, createGoferFilestores.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// One for each mount of the spec that needs one, in their order. What one of that name has
/// left is replaced: ids are given once at a time. Of a pod's volume it is the same for all.
/// Errors: kResourceExhausted: no space; none is left then. Blocks: on files.
Result<std::vector<UniqueFd>> MakeFilestores(const Spec& spec, const Overlay& overlay,
                                             const std::string& sandbox_id);

/// Again: success. Blocks: on files.
Status RemoveFilestores(const std::vector<std::string>& paths);

/// Where they are, those without a name and those of the pod's volumes left out.
std::vector<std::string> FilestorePaths(const Spec& spec, const std::string& sandbox_id);

/// Where those of the pod's volumes would be, if they have any: they go with the sentry, which has
/// one for all containers.
std::vector<std::string> VolumeFiles(const std::vector<Volume>& volumes,
                                     const std::string& sandbox_id);

}  // namespace gantry::gvisor
