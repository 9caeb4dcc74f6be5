// SPDX-License-Identifier: Apache-2.0
//
// The guest image: a kernel and the initrd with the agent, as tools/vmm/make-image puts them
// together. They are files of the node, so that many VMs share their pages in its cache.
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/vmm/options.h"

namespace gantry::vmm {

struct GuestImage {
  std::string kernel;
  std::string initrd;
  /// Of an installed one: "kernel 6.1.0-56-cloud-amd64, agent 0123456789abcdef"; else empty.
  std::string versions;
};

/// What the options name, and of what they do not name what is installed in `directory`.
/// Errors: kFailedPrecondition: a file is not there, with its path, and the option or package, or
/// the kernel is one of another machine.
/// Blocks: briefly.
Result<GuestImage> FindImage(const VmmOptions& options, const std::string& directory);

/// Where the image is installed: beside the plugin that has this code, in `vmm`; or what
/// GANTRY_VMM_IMAGE names in the environment, for tests. Thread: any, once at the start.
std::string InstalledImages();

}  // namespace gantry::vmm
