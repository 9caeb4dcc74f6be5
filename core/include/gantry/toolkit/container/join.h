// SPDX-License-Identifier: Apache-2.0
//
// One process more in a container that runs, as an Exec wants it: in the namespaces and cgroups
// that the container's init is in, with what its `process` object says.
//
// It is made as the init is, see make.h, and nothing of the container is changed by it: no mount,
// no name, no sysctl. What the container could use against its maker is not there either: its
// namespaces are opened by its init's pidfd, so that they are of that process and of no later one
// with its number; what is the maker's is closed before the first of them is joined; nothing of the
// container is executed but the program.
//
// Where runtimes differ, or the specification says nothing: what `process` does not say of
// capabilities, resource limits and labels is as config.json has it for the init, and so are the
// personality and the filter of seccomp. `cwd` has to be there.
//
// Needs: as make.h; the directories of the init's cgroups, where the maker is not in them already.
// Source: OCI runtime-spec 1.3, config.md; setns(2), pidfd_open(2).
#pragma once

#include <array>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

struct JoinRequest {
  /// Of the container.
  oci::Spec spec;
  std::string bundle;
  /// See `MakeRequest::id`.
  std::string id;
  /// A pidfd of the container's init, or of another process in it. Borrowed.
  int init = -1;
  oci::ProcessSpec process;
  /// As those of `MakeRequest`.
  std::array<int, 3> streams = {-1, -1, -1};
  std::vector<int> passed_on;
  bool sibling = false;
  bool takes_listener = false;
  BuiltInProgram* program = nullptr;
};

/// Makes the process, which waits at a gate. Thread, blocks: as `Make`. Errors: as of `Make`;
/// kNotFound: the container's init has ended; kFailedPrecondition: one of its cgroups is mounted
/// nowhere; kInvalidArgument: `execCPUAffinity` is no list of CPUs.
Result<MadeProcess> Join(JoinRequest request);

}  // namespace gantry::container
