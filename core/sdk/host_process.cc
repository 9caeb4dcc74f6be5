// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <gantry/host_process.h>

namespace gantry {

uint32_t WaitStatus::code() const {
  if (WIFSIGNALED(raw)) {
    return 128U + static_cast<uint32_t>(WTERMSIG(raw));
  }
  return static_cast<uint32_t>(WEXITSTATUS(raw));
}

}  // namespace gantry
