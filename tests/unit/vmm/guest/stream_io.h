// SPDX-License-Identifier: Apache-2.0
//
// The host's end of a stream, for tests that wait for it.
#pragma once

#include <string>

#include <gantry/unique_fd.h>

namespace gantry::vmm {

/// Payload up to the end of the stream; with `[cut]` behind it where the end is missing.
std::string ReadStream(const UniqueFd& stream);
/// The same until `words` have come.
std::string ReadUntil(const UniqueFd& stream, const std::string& words);
void WriteStream(const UniqueFd& stream, const std::string& bytes);
void EndStream(const UniqueFd& stream);

}  // namespace gantry::vmm
