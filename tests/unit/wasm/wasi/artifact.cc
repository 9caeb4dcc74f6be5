// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/wasi/artifact.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace gantry::wasm {

std::string Compiled(const std::string& module) {
  char folder[] = "/tmp/gantry-wasi-XXXXXX";
  EXPECT_NE(::mkdtemp(folder), nullptr);
  const std::string artifact = std::string(folder) + "/artifact";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl(GANTRY_GUEST_COMPILER, GANTRY_GUEST_COMPILER, module.c_str(), artifact.c_str(),
            nullptr);
    ::_exit(103);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << module << " is no module that can be compiled";
  std::ifstream file(artifact, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  return bytes;
}

}  // namespace gantry::wasm
