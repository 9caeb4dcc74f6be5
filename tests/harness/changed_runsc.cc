// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/changed_runsc.h"

#include <filesystem>

namespace gantry::e2e {

namespace fs = std::filesystem;

ChangedRunsc::ChangedRunsc(const Settings& settings)
    : path_(settings.root + "/changed-runsc/runsc") {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "e2e_changed_runsc";
  if (fs::create_directory(fs::path(path_).parent_path())) {
    fs::copy_file(program, path_);
    // Not a link: into a folder of root's nobody may follow it.
    fs::copy_file(settings.RunscOf(settings.runsc_release), path_ + ".real");
  }
}

void ChangedRunsc::Hang() const { WriteText(path_ + ".hangs", ""); }

void ChangedRunsc::HangNoMore() const { fs::remove(path_ + ".hangs"); }

std::vector<HostProcess> ChangedRunsc::Of(const std::string& bundle) {
  return Processes([&](const HostProcess& process) {
    return process.command.find("--root=" + bundle + "/runsc ") != std::string::npos;
  });
}

}  // namespace gantry::e2e
