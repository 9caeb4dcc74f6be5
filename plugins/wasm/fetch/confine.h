// SPDX-License-Identifier: Apache-2.0
//
// What gantry-wasm-fetch gives up before it hears of anybody: what it reads is an image's, which
// is anybody's, and as root it could write to most files of the node.
#pragma once

#include <gantry/error.h>

namespace gantry::wasm::fetch {

/// From now on all threads of the process can ask over UNIX sockets, write to the descriptors that
/// they have, and wait: no file is opened, made or changed, no program and no process is made, no
/// memory is executed that was not before. What else is called the kernel answers as if it did not
/// have it (ENOSYS), since libraries try much and do without. Again: kInternal.
/// Errors: kInternal: the kernel takes no filter. Source: seccomp(2).
Status GiveUpCalls();

}  // namespace gantry::wasm::fetch
