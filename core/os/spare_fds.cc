// SPDX-License-Identifier: Apache-2.0
#include "core/os/spare_fds.h"

#include <fcntl.h>

namespace gantry::os {

void SpareFds::Fill() {
  for (UniqueFd& fd : fds_) {
    fd.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

}  // namespace gantry::os
