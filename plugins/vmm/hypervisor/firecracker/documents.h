// SPDX-License-Identifier: Apache-2.0
//
// What Firecracker is told, as its API has it: src/firecracker/swagger/firecracker.yaml.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugins/vmm/hypervisor/json.h"
#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm::firecracker {

/// A target, and what is PUT there.
using Document = std::pair<std::string, Json>;

Document DiskDocument(const Disk& disk);
Document NicDocument(const Nic& nic);
/// All of a VM, in the order in which it is told.
std::vector<Document> VmDocuments(const VmConfig& config);
/// For /snapshot/create.
Json SnapshotDocument(const Snapshot& snapshot);
/// For /snapshot/load: taps and vsock are not those of the VM that it was taken of.
Json LoadDocument(const VmConfig& config, const Snapshot& from);

}  // namespace gantry::vmm::firecracker
