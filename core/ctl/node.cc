// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/node.h"

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/backends.h"
#include "core/ctl/run_tool.h"
#include "core/link/paths.h"
#include "core/os/fs.h"

namespace gantry::ctl {

Node Node::Here(const config::Config& config) {
  Node node;
  if (const char* const path = std::getenv("PATH"); path != nullptr) {
    std::vector<std::string> dirs;
    std::istringstream words(path);
    for (std::string dir; std::getline(words, dir, ':');) {
      if (dir.starts_with('/')) {
        dirs.push_back(dir);
      }
    }
    node.path.insert(node.path.begin(), dirs.begin(), dirs.end());
  }
  node.run_dir = link::RunDir();
  const auto engine = link::FindProgram("gantryd");
  const char* const libexec = std::getenv("GANTRY_LIBEXEC_DIR");
  node.libexec_dir = engine               ? engine->substr(0, engine->rfind('/'))
                     : libexec != nullptr ? libexec
                                          : "/usr/local/libexec/gantry";
  std::istringstream left_out(GANTRY_LEFT_OUT);
  for (std::string name; std::getline(left_out, name, ',');) {
    node.left_out.push_back(name);
  }
  node.first_line = [](const std::vector<std::string>& argv) { return FirstLineOf(argv); };
  const auto self = ReadLink("/proc/self/exe");
  const auto backends =
      std::make_shared<backend::Backends>(config, node.libexec_dir, node.run_dir,
                                          self ? *self : std::string(), backend::Mark::kNotLeft);
  node.find_backend = [backends](const std::string& name) { return backends->Find(name); };
  return node;
}

std::string Node::Find(const std::string& program) const {
  for (const std::string& dir : path) {
    if (std::string file = Format("{}{}/{}", root, dir, program); IsExecutable(file)) {
      return file;
    }
  }
  return "";
}

}  // namespace gantry::ctl
