// SPDX-License-Identifier: Apache-2.0
//
// The kernel's modules that the image has, in the order that it says: those without which the host
// cannot be heard first, the others in a child while the host is greeted already.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::vmm::guest {

/// Each module that the file `list` names, one a line, of the same folder. One that is loaded, or
/// built in, or of a device that the machine has not, is success. Errors: the first that fails,
/// naming it; the others are loaded. Blocks: for the kernel.
Status LoadModules(const std::string& list);

/// In a child, which is to be collected. What waits for it is `AwaitModules`.
Status LoadModulesInChild(const std::string& list);

/// Until that child has ended. Blocks: so long.
void AwaitModules();

}  // namespace gantry::vmm::guest
