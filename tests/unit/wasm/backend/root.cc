// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/backend/root.h"

#include <stdlib.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

namespace gantry::wasm {

TestRoot::TestRoot() {
  char name[] = "/tmp/gantry-wasm-XXXXXX";
  bundle_ = mkdtemp(name);
  std::filesystem::create_directories(rootfs());
}

TestRoot::~TestRoot() { std::filesystem::remove_all(bundle_); }

void TestRoot::Write(const std::string& name, const std::string& text, int mode) const {
  const std::string path = rootfs() + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const Status written = WriteFile(path, text, static_cast<mode_t>(mode));
  ASSERT_TRUE(written) << written.error().message;
}

}  // namespace gantry::wasm
