// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry::vmm {

/// An initrd with `program` as its init and the modules that a vsock device needs, of the kernel
/// that was unpacked below `kernel_root`, as the file `to`. Source: Linux,
/// Documentation/driver-api/early-userspace/buffer-format.rst.
Status WriteInitrd(const std::string& kernel_root, const std::string& program,
                   const std::string& to);

/// Its boot/vmlinuz-*.
Result<std::string> KernelBelow(const std::string& kernel_root);

}  // namespace gantry::vmm
