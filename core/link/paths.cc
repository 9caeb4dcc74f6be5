// SPDX-License-Identifier: Apache-2.0
#include "core/link/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::link {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::string RunDir() {
  std::string dir = Environment("GANTRY_RUN_DIR");
  while (dir.size() > 1 && dir.ends_with('/')) {
    dir.pop_back();
  }
  return dir.empty() ? "/run/gantry" : dir;
}

Result<std::string> FindProgram(const std::string& name) {
  std::vector<std::string> dirs;
  if (std::string dir = Environment("GANTRY_LIBEXEC_DIR"); !dir.empty()) {
    dirs.push_back(std::move(dir));
  } else {
    GANTRY_TRY(const std::string self, ReadLink("/proc/self/exe"));
    dirs.push_back(self.substr(0, self.rfind('/')));
    dirs.push_back(dirs[0].substr(0, dirs[0].rfind('/')) + "/libexec/gantry");
    dirs.emplace_back(GANTRY_INSTALLED_LIBEXEC);
  }
  std::string looked;
  for (const std::string& dir : dirs) {
    std::string path = Format("{}/{}", dir, name);
    if (access(path.c_str(), X_OK) == 0) {
      return path;
    }
    looked += Format("{}'{}'", looked.empty() ? "" : " nor in ", dir);
  }
  return Fail(Code::kNotFound,
              "find program '{}': not in {}: install gantry, or set GANTRY_LIBEXEC_DIR", name,
              looked);
}

}  // namespace gantry::link
