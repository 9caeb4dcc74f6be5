// SPDX-License-Identifier: Apache-2.0
//
// What CRI says in an Update when a pod is resized in place: the sandbox's extension
// "updated-resources", JSON of the type io.containerd.cri.v1/UpdatedResources, with the members
// Overhead and Resources, each a CRI LinuxContainerResources.
// Source: containerd 2.3.4, internal/cri/server/podsandbox/helpers.go.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::task {

inline constexpr char kUpdatedResources[] = "updated-resources";

/// The Resources in it as a protobuf runtime.v1.LinuxContainerResources; empty where there are
/// none. Errors: kInvalidArgument. Thread: any.
Result<std::string> ReadUpdatedResources(std::string_view json);

}  // namespace gantry::task
