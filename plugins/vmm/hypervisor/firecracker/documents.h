// SPDX-License-Identifier: Apache-2.0
//
// What Firecracker is told, as its API has it: src/firecracker/swagger/firecracker.yaml.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plugins/vmm/hypervisor/vm_config.h"

namespace gantry::vmm::firecracker {

/// A target, and what is PUT there.
using Document = std::pair<std::string, nlohmann::json>;

Document DiskDocument(const Disk& disk);
Document NicDocument(const Nic& nic);
/// All of a VM, in the order in which it is told.
std::vector<Document> VmDocuments(const VmConfig& config);
/// For /snapshot/create.
nlohmann::json SnapshotDocument(const Snapshot& snapshot);
/// For /snapshot/load: taps and vsock are not those of the VM that it was taken of.
nlohmann::json LoadDocument(const VmConfig& config);

}  // namespace gantry::vmm::firecracker
