// SPDX-License-Identifier: Apache-2.0
//
// A VM of Cloud Hypervisor, over its REST API. Its process is told its API socket alone; the VM is
// described in one request, and NICs are added behind it, since their taps travel with the
// requests that add them.
//
// Snapshots are directories; a VM of one has neither vsock nor file systems nor NICs (their paths
// and descriptors are another VM's), which come when it has been restored.
// Source: cloud-hypervisor after v53 (API 0.3.0), vmm/src/api/openapi/cloud-hypervisor.yaml,
// docs/api.md, docs/snapshot_restore.md.
#pragma once

#include <memory>
#include <string>

#include "plugins/vmm/hypervisor/hypervisor.h"

namespace gantry::vmm {

struct CloudHypervisorOptions {
  std::string program = "/usr/bin/cloud-hypervisor";
  /// Where its API's socket is made; nothing is there before `Describe`.
  std::string control_socket{};
};

/// Errors: kInvalidArgument: the configuration; kUnimplemented: what it has not.
Result<std::unique_ptr<Hypervisor>> MakeCloudHypervisor(VmConfig config,
                                                        CloudHypervisorOptions options);

}  // namespace gantry::vmm
