// SPDX-License-Identifier: Apache-2.0
//
// What the program gives up before it has to do with anybody. A guest that breaks into it finds
// the sockets of its own machine and nothing else.
#pragma once

#include <cstddef>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

/// Descriptors that the program has beside those of streams.
inline constexpr size_t kOwnDescriptors = 64;

/// As many descriptors as that many streams need. Returns how many streams there can be, at least
/// 1. Errors: kResourceExhausted.
Result<size_t> ReserveDescriptors(size_t streams);

/// `directory` becomes the root: with CAP_SYS_CHROOT, or, without it, in a user namespace of its
/// own, where the node lets everybody have one. Errors: the errno's.
Status EnterRoot(UniqueFd directory);

/// No capability, none to come, nobody who looks into it; and of system calls only those of the
/// loop: another one ends the program. Source: capabilities(7), seccomp(2).
Status GiveUpRights();

}  // namespace gantry::vmm::vsock
