// SPDX-License-Identifier: Apache-2.0
//
// What /proc says of the processes that the tests of `SpawnProcess` have made.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

#include "core/os/fs.h"

namespace gantry::os {

/// A namespace's number in the link of /proc, as `net:[4026531840]`.
inline std::string LinkOf(const ProcessId& process, const std::string& name) {
  return ReadLink("/proc/" + std::to_string(process.pid) + "/ns/" + name).value_or("none");
}

inline ProcessId Self() { return {.pid = getpid(), .start_time = 0}; }

inline UniqueFd OpenNamespace(const ProcessId& process, const std::string& name) {
  const std::string path = "/proc/" + std::to_string(process.pid) + "/ns/" + name;
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

/// The line of /proc/PID/status that begins with `key`.
inline std::string StatusLine(const ProcessId& process, const std::string& key) {
  std::istringstream in(
      ReadFile("/proc/" + std::to_string(process.pid) + "/status", 65536).value_or(""));
  std::string line;
  while (std::getline(in, line) && !line.starts_with(key)) {
  }
  return line;
}

}  // namespace gantry::os
