// SPDX-License-Identifier: Apache-2.0
//
// Layers for writing that are on a disk of the node: a file for each container whose root is made
// of shared images, with an ext4 in it. It is as large as the option says and has no block before
// the guest writes one; what is in it is gone with the container, so it has no journal.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/error.h>

#include "plugins/vmm/storage/storage.h"

namespace gantry::vmm {

/// Where the layer of that number of the sandbox lies.
std::string LayerFileOf(const StorageRequest& request, uint32_t number);

/// Makes it anew. Errors: kFailedPrecondition: there is no mke2fs, or it has made none, with what
/// it said; the errno's. Blocks: while mke2fs runs, some milliseconds. Thread: any.
Status MakeLayerFile(const std::string& file, uint32_t mib);

/// What sandboxes have left whose directories are gone, as after the node's end. Blocks: on files.
void SweepLayerFiles(const StorageRequest& request);

}  // namespace gantry::vmm
