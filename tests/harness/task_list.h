// SPDX-License-Identifier: Apache-2.0
//
// What `ctr tasks ls` shows.
#pragma once

#include <sys/types.h>

#include <sstream>
#include <string>

namespace gantry::e2e {

/// pid 0: there is none.
struct Task {
  pid_t pid = 0;
  std::string state;
};

inline Task TaskIn(const std::string& list, const std::string& id) {
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Task task;
    if (words >> name >> task.pid >> task.state && name == id) {
      return task;
    }
  }
  return {};
}

}  // namespace gantry::e2e
