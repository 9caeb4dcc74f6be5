// SPDX-License-Identifier: Apache-2.0
//
// The log that a sentry or a gofer writes by itself: warnings, and why it ends. Whoever has taken
// one over writes what he wants, so it lies in a file system of its own in memory, which is full
// at `kMaxLogBytes`: its writer then gets ENOSPC, and nobody else has less. What is in it counts
// to the cgroup of its writer. Nothing is mounted anywhere: the file system goes with the last
// descriptor, and has to be in no record. Not for logs that an operator has asked for.
#pragma once

#include <cstddef>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

inline constexpr size_t kMaxLogBytes = size_t{1} << 20;

/// A new, empty one, open for reading and appending. Errors: the kernel's; kUnimplemented before
/// Linux 5.2. Blocks: briefly.
Result<UniqueFd> MakeBoundedLog();

/// Its last bytes; none: it is no file, or cannot be read. Whoever writes it is not disturbed.
std::string LastBytes(const UniqueFd& log, size_t max_bytes);

/// Why a program of gVisor's ended, by the log that it has left; empty where it says nothing.
std::string LastWords(const UniqueFd& log);

/// What a process that is given it can open it by, when it has that number there.
std::string OwnPath(int number);

/// A sentry's, in the store, where it outlives the engine.
inline constexpr const char* kSentryLogName = "sentry-log";
/// None: there is none.
UniqueFd KeptSentryLog(SandboxContext& context);

}  // namespace gantry::gvisor
