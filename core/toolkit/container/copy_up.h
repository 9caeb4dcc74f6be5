// SPDX-License-Identifier: Apache-2.0
//
// What a tmpfs with the option `tmpcopyup` begins with: all that is in the directory under it.
#pragma once

#include <gantry/error.h>

namespace gantry::container {

/// Copies what is in the directory `from` into the directory `to`: directories, files and links,
/// with owner, mode and times. Links are not followed; what is mounted below and what is a device,
/// a fifo or a socket is left out. What it takes is limited by the file system of `to`. Needs
/// /proc. Errors: the errno's (ENOSPC: no room in `to`); kResourceExhausted: directories more than
/// 128 deep.
Status CopyUp(int from, int to);

}  // namespace gantry::container
