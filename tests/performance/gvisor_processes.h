// SPDX-License-Identifier: Apache-2.0
//
// What runs for pods of gVisor beside what gVisor itself is made of.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace gantry::bench {

/// All that descend from these and are neither sentry nor gofer, nor descend from one.
std::vector<pid_t> BesideSentries(const std::vector<pid_t>& roots);

/// The sentries, or the gofers, that descend from these.
std::vector<pid_t> Sentries(const std::vector<pid_t>& roots);
std::vector<pid_t> Gofers(const std::vector<pid_t>& roots);

/// Waits until there are so many processes and they do next to nothing: what is still starting
/// would disturb what is measured next. False: not within five seconds.
bool AwaitIdle(const std::function<std::vector<pid_t>()>& pids, size_t count);

}  // namespace gantry::bench
