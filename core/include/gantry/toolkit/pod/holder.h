// SPDX-License-Identifier: Apache-2.0
//
// The process that holds the namespaces of a pod without a pause container:
// gantry-pause, in libexec/gantry. What a pod has of its own is planned and started here.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

namespace gantry {

/// What the pod gets of its own. What is not set is the node's.
struct HolderRequest {
  /// The program; see `FindHolder`.
  std::string program;
  /// Empty: the node's network.
  std::string netns_path;
  bool ipc = false;
  bool uts = false;
  bool pid = false;
  /// The network namespace belongs to a user namespace, which is the pod's.
  bool user = false;
  /// Of the uts namespace.
  std::string hostname;
  /// By their file, from /proc/sys on, checked to be of the namespaces above.
  std::map<std::string, std::string> sysctls;
  std::vector<std::string> cgroups;
};

/// Errors: kInvalidArgument for sysctls that would be the node's, and for what
/// contradicts itself.
Result<HolderRequest> HolderRequestOf(const SandboxRequest& request, const PodConfig& config);

/// gantry-pause, beside the plugins. Errors: kFailedPrecondition.
Result<std::string> FindHolder();

/// Starts it. `taken` is called when it stands, and before it would outlive the
/// engine; where that fails, it ends. Blocks: until `deadline`.
Result<std::shared_ptr<HostProcess>> StartHolder(
    SandboxContext& context, const HolderRequest& holder_request, Deadline deadline,
    const std::function<Status(const std::shared_ptr<HostProcess>&)>& taken);

/// Ends what an engine before this one began to start and did not come to save.
void EndUnsavedHolder(SandboxContext& context, std::chrono::milliseconds limit);

/// SIGTERM, and SIGKILL when half of the time is over. Again: fine.
/// Errors: kDeadlineExceeded.
Status StopHolder(HostProcess& holder, std::chrono::milliseconds limit);

}  // namespace gantry
