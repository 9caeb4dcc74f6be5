// SPDX-License-Identifier: Apache-2.0
//
// gantryctl-manual FOLDER: writes gantryctl's manual page and completions there, for the build.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/ctl/arguments.h"
#include "core/ctl/completions.h"
#include "core/ctl/manual.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gantryctl-manual FOLDER\n", stderr);
    return 2;
  }
  const gantry::ctl::Help help = gantry::ctl::ReadHelp();
  const std::vector<std::pair<std::string, std::string>> files = {
      {"gantryctl.8", gantry::ctl::ManualPage(help)},
      {"gantryctl", gantry::ctl::BashCompletion(help)},
      {"_gantryctl", gantry::ctl::ZshCompletion(help)},
      {"gantryctl.fish", gantry::ctl::FishCompletion(help)}};
  for (const auto& [name, text] : files) {
    if (const auto done = gantry::WriteFile(gantry::Format("{}/{}", argv[1], name), text, 0644);
        !done) {
      std::fprintf(stderr, "gantryctl-manual: %s\n", done.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
