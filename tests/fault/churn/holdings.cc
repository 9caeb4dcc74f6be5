// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/churn/holdings.h"

#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include <gantry/format.h>

#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

/// It gives memory back when it had nothing to do for a second.
constexpr e2e::Duration kSettles = std::chrono::seconds(3);

int64_t FieldKib(pid_t pid, const std::string& name) {
  std::istringstream lines(e2e::ReadText("/proc/" + std::to_string(pid) + "/smaps_rollup"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) {
      return std::stoll(line.substr(name.size() + 1));
    }
  }
  return 0;
}

int64_t OwnKib(pid_t pid) { return FieldKib(pid, "Pss_Anon") + FieldKib(pid, "Pss_Shmem"); }

int64_t FilesInMemoryKib(pid_t pid) {
  namespace fs = std::filesystem;
  int64_t blocks = 0;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
  for (const std::string& name : e2e::ListFolder(folder)) {
    std::error_code error;
    struct stat info{};
    if (fs::read_symlink(folder + name, error).string().starts_with("/memfd:") &&
        stat((folder + name).c_str(), &info) == 0) {
      blocks += info.st_blocks;
    }
  }
  return blocks / 2;
}

}  // namespace

std::string Holdings::Text() const {
  return Format("keeper {} descriptors, {} KiB, {} KiB in files; engine {} descriptors",
                keeper_descriptors, keeper_kib, keeper_files_kib, engine_descriptors);
}

Holdings ReadHoldings(const e2e::Node& node) {
  const pid_t keeper = node.Keeper().pid;
  int64_t least = OwnKib(keeper);
  e2e::Eventually(
      [&] {
        least = std::min(least, OwnKib(keeper));
        return false;
      },
      kSettles);
  return {e2e::CountDescriptors(keeper), e2e::CountDescriptors(node.Engine().pid), least,
          FilesInMemoryKib(keeper)};
}

}  // namespace gantry::fault
