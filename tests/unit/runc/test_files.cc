// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runc/test_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

namespace gantry::runc {

TempDir::TempDir() {
  std::string name = "/tmp/gantry-runc-XXXXXX";
  path_ = mkdtemp(name.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void MakeDir(const std::string& path) { std::filesystem::create_directories(path); }

void Write(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path, std::ios::trunc) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return "(none)";
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsThere(const std::string& path) { return Exists(path); }

TestPipe::TestPipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
}

std::shared_ptr<FakeHostProcess> RunShell(const std::string& script) {
  return gantry::RunShell(script).value();
}

}  // namespace gantry::runc
