// SPDX-License-Identifier: Apache-2.0
//
// What Cloud Hypervisor is told of a VM, as its API has it. Names of members, types and defaults:
// vmm/src/api/openapi/cloud-hypervisor.yaml.
#pragma once

#include <string>
#include <string_view>

#include "plugins/vmm/hypervisor/json.h"
#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm::cloud_hypervisor {

/// VmConfig, without NICs.
Json VmDocument(const VmConfig& config);
Json DiskDocument(const Disk& disk);
Json NicDocument(const Nic& nic);
Json FileSystemDocument(const FileSystem& file_system);
Json VsockDocument(const Vsock& vsock);

/// What devices are called there.
std::string DiskId(std::string_view serial);
std::string NicId(std::string_view id);
std::string FileSystemId(std::string_view tag);

}  // namespace gantry::vmm::cloud_hypervisor
