// SPDX-License-Identifier: Apache-2.0
//
// Stands in for gantryd's hidden option `--probe-plugin`.
#include <unistd.h>

#include <cstring>
#include <string>

#include "core/backend/plugin_host.h"

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5 || std::strcmp(argv[1], "--probe-plugin") != 0) {
    return 120;
  }
  if (std::strcmp(argv[3], "hang") == 0) {
    pause();
  }
  const std::string options = argc == 5 ? argv[4] : "";
  return gantry::backend::PluginHost::RunProbe(argv[2], argv[3], argc == 5 ? &options : nullptr);
}
