// SPDX-License-Identifier: Apache-2.0
//
// The sections of config.json, each read by a file of its own.
#pragma once

#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::oci {

/// `process`. Errors: kInvalidArgument, as of all of these.
Result<ProcessSpec> ReadProcess(const Json& process);

/// `linux`, with what of it is about cgroups.
Status ReadLinux(const Json& part, Spec& out);

Status ReadSeccomp(const Json& part, std::optional<Seccomp>& out);

/// A list of `{containerID, hostID, size}`.
Status ReadIdMappings(const Json& list, std::vector<IdMapping>& out);

}  // namespace gantry::oci
