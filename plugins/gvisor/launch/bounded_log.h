// SPDX-License-Identifier: Apache-2.0
//
// The log that a sentry or a gofer writes by itself: warnings, and why it ends. It is a bounded
// one. Not for logs that an operator has asked for.
#pragma once

#include <cstddef>
#include <string>

#include <gantry/context.h>
#include <gantry/toolkit/files/bounded_log.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

inline constexpr size_t kMaxLogBytes = size_t{1} << 20;

/// Why a program of gVisor's ended, by the log that it has left; empty where it says nothing.
std::string LastWords(const UniqueFd& log);

/// What a process that is given it can open it by, when it has that number there.
std::string OwnPath(int number);

/// A sentry's, in the store, where it outlives the engine.
inline constexpr const char* kSentryLogName = "sentry-log";
/// None: there is none.
UniqueFd KeptSentryLog(SandboxContext& context);

}  // namespace gantry::gvisor
