// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/report.h"

#include <unistd.h>

#include <string>

namespace gantry::vmm::vsock {

void ReportLine(std::string_view line) {
  static int left = 100;
  if (left == 0) {
    return;
  }
  --left;
  std::string text = "gantry-vsock: ";
  text += line;
  text += left == 0 ? " (and no more is said)\n" : "\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
    left = 0;  // Nobody reads it.
  }
}

}  // namespace gantry::vmm::vsock
