// SPDX-License-Identifier: Apache-2.0
//
// What backends say, made fit for containerd: a value that cannot be is replaced,
// and the log says whose it was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gantry/container.h>
#include <gantry/host_process.h>
#include <gantry/process.h>

namespace gantry::backend {

/// An exit code above 255 becomes 255; a time before 1970 or in the future, now.
/// `whose`: "c1/e1".
ExitStatus CheckExit(std::string_view backend, std::string_view whose, ExitStatus exit);
/// False: no process of the host can have it.
bool CheckPid(std::string_view backend, std::string_view whose, HostPid pid);
/// Only directories that can be a container's own: plain absolute paths, at least two
/// levels below the root.
std::vector<std::string> CheckStateDirs(std::string_view backend, std::string_view whose,
                                        std::vector<std::string> dirs);
/// False: it cannot be kept and run, as a whole or since its program's path is not absolute.
bool CheckCleanup(std::string_view backend, std::string_view whose, const HostCommand& command);

}  // namespace gantry::backend
