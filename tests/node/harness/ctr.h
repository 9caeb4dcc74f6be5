// SPDX-License-Identifier: Apache-2.0
//
// The system's containerd, as a user has it: `ctr` in a namespace of the tests.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/harness/program.h"
#include "tests/harness/task_list.h"

namespace gantry::node {

using Words = std::vector<std::string>;

inline constexpr char kNamespace[] = "node";
inline constexpr char kImage[] = "docker.io/library/busybox:gantry";

/// crun or runc, from GANTRY_E2E_OCI; both are handlers of the node's gantry.yaml.
std::string Oci();

/// `ctr -n node WORDS`; both threads and tests may run them.
Words CtrWords(const Words& words);
e2e::Output Ctr(const Words& words);
/// `run FLAGS --runtime io.containerd.gantry-OCI.v1 IMAGE ID COMMAND`
Words CtrRunWords(const std::string& id, const Words& command, const Words& flags);
e2e::Output CtrRun(const std::string& id, const Words& command, const Words& flags);
/// Thread: any.
e2e::Output Exec(const std::string& id, const Words& command);

e2e::Task FindTask(const std::string& id);
/// Waits until the task has ended and deletes it; returns the container's exit code,
/// which must not be 0, and -1 where it does not end.
int DeleteTask(const std::string& id);
/// Kills what runs and removes task and container. Empty: done.
std::string Remove(const std::string& id);
/// Ids of the namespace's containers.
std::vector<std::string> Containers();

}  // namespace gantry::node
