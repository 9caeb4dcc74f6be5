// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/consoles.h"

#include <algorithm>
#include <sstream>

#include <gantry/format.h>

#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

/// The option `directory` of the vmm backend, as main.cc and kit.sh have it.
constexpr const char* kMachines = "/vmm";
constexpr size_t kTail = 2000;

}  // namespace

std::string ConsolesOf(const std::string& root, std::string_view log) {
  std::string said;
  const std::string machines = root + kMachines;
  for (const std::string& name : e2e::ListFolder(machines)) {
    const std::string path = Format("{}/{}/vm/console", machines, name);
    const std::string text = e2e::ReadText(path);
    if (text.empty()) {
      continue;  // A healthy kernel says nothing, and not all that is there is a machine.
    }
    said += Format("--- {}:\n{}\n", path,
                   std::string_view(text).substr(text.size() - std::min(text.size(), kTail)));
  }
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) {
    if (line.contains("its console end") || line.contains("the console ends with")) {
      said += line + "\n";
    }
  }
  return said;
}

}  // namespace gantry::contract
