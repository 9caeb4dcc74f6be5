// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <gantry/testing/host_process.h>

namespace gantry::fakes {

/// Starts a child as the keeper would: what a `SpawnRequest` of the interface asks for.
/// Errors: the step that failed, with its errno; kInvalidArgument for a controlling terminal that
/// is none of the descriptors. Thread: any. Blocks: until its program runs.
Result<std::shared_ptr<FakeHostProcess>> Spawn(const SpawnRequest& request);

/// The file behind a program that comes open; empty: none comes.
std::string FileBehind(const UniqueFd& program);

}  // namespace gantry::fakes
