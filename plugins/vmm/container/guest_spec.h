// SPDX-License-Identifier: Apache-2.0
//
// config.json as the maker in the guest is to get it. The guest is the pod: its own namespaces are
// the pod's, its settings are the pod's, and what a spec says of the node means nothing there. So
// namespaces that are joined become the guest's own, by being left out; cgroups are the agent's to
// name; labels of the node's security modules are not known to the guest's kernel.
//
// What cannot be had in a guest is refused by name, before anything is made.
// Source: OCI runtime-spec 1.2, config.md and config-linux.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::vmm {

/// Errors: kFailedPrecondition, naming what it is and what to do: the node's network, a user
/// namespace, an agent for seccomp, intelRdt, a device of the node. `further`: the pod has its
/// machine; then also settings of the kernel, which would change what others have.
Status CheckSpec(const oci::Spec& spec, bool further);

/// `spec_json`: with the root and mounts of the guest. `terminal`: whether the caller's streams are
/// a terminal's, whatever the spec says. Errors: kInvalidArgument: no JSON object.
Result<std::string> MakeGuestSpec(const std::string& spec_json, bool terminal);
/// The same of the `process` object of an exec.
Result<std::string> MakeGuestProcess(const std::string& process_json);
/// The same of limits: without the node's CPUs and memory nodes. Empty: there are none.
Result<std::string> MakeGuestResources(const std::string& resources_json);

/// What a container, or a pod, may use, as the specification has it. 0: no limit.
struct Limits {
  int64_t cpu_quota = 0;
  uint64_t cpu_period = 0;
  int64_t memory = 0;

  bool operator==(const Limits&) const = default;
};

/// Of `linux.resources`, or of an update of those that were `before`; empty: none are said.
/// Errors: kInvalidArgument, with a JSON pointer.
Result<Limits> LimitsIn(const std::string& resources_json, const Limits& before = {});

}  // namespace gantry::vmm
