// SPDX-License-Identifier: Apache-2.0
//
// What the rows of virtual machines measure within a guest: this program is in the root of their
// containers, and says on its standard output what it found.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gantry::bench {

/// Of the host, which listens there; not one of the agent's.
inline constexpr unsigned kEchoPort = 5100;
inline constexpr unsigned kBulkPort = 5101;

/// The exit status of the tool that these words name; none: they name none.
///
///     --guest-first-byte PROGRAM...   ms from the fork to the first byte of its output, and waits
///     --guest-echo                    dials kEchoPort; forks for each byte of the host's, answers
///     --guest-write BYTES             dials kBulkPort and writes as fast as it can
///     --guest-read FOLDER             ms to read all files below it, cold and once more
///     --guest-agent                   KiB of the first process: resident, and its own
std::optional<int> GuestTool(const std::vector<std::string>& words);

}  // namespace gantry::bench
