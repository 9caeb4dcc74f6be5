// SPDX-License-Identifier: Apache-2.0
//
// What GoogleTest says of a check that failed, as the author of a backend can read it: what was
// got and what was wanted, without the suite's source.
#pragma once

#include <string>

namespace gantry::contract {

/// `message`: a `testing::TestPartResult`'s. Lines without an end of line: "got: ...",
/// "wanted: ...", and what the check says beside that.
std::string ReadableFailure(const std::string& message);

}  // namespace gantry::contract
