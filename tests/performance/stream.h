// SPDX-License-Identifier: Apache-2.0
//
// Bytes that a process of a container writes as fast as it can, read as
// containerd's clients do: 32 KiB at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// Reads `bytes` of the fifo `fd`. Adds the phases "rate" (MiB/s) and "cpu" (ms/GiB,
/// what all threads of the side's processes ran meanwhile). Both count from the first
/// read to the last byte, so that neither start nor end is in them.
/// Errors: kDeadlineExceeded when nothing comes, kInternal when it ends before; both
/// name `what`.
/// Blocks: until the bytes are there.
/// The same of whatever `read` reads: the next bytes, none at their end.
Status MeasureStream(const Lab& lab, const Side& side, uint64_t bytes, const std::string& what,
                     const std::function<Result<size_t>()>& read, Phases& phases);
Status ReadStream(const Lab& lab, const Side& side, int fd, uint64_t bytes, const std::string& what,
                  Phases& phases);

}  // namespace gantry::bench
