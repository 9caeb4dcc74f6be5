// SPDX-License-Identifier: Apache-2.0
// Guests in the root of an image, which has what it likes and no more. Needs root.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::SizeIs;

class Roots : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    char made[] = "/tmp/gantry-root-XXXXXX";
    root_ = mkdtemp(made);
  }

  void TearDown() override {
    if (!root_.empty()) {
      std::filesystem::remove_all(root_);
    }
  }

  std::string root_;
};

TEST_F(Roots, OneThatIsEmptyDoes) {
  for (const std::string name : {"tool", "tool_component"}) {
    const GuestEnd end = RunGuest({.name = name, .args = {"tool", "random"}, .root = root_});
    EXPECT_EQ(end.status, 0) << name;
    EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << name << ": " << end.why;
    EXPECT_THAT(end.out, SizeIs(33)) << name;
  }
}

// An image may bring files by the names that artifacts have in /proc: its own machine code.
TEST_F(Roots, AFolderOfTheImageIsNotTakenForProc) {
  const std::string folder = root_ + "/proc/self/fd";
  std::filesystem::create_directories(folder);
  for (int each = 0; each < 256; ++each) {
    std::ofstream(folder + "/" + std::to_string(each)) << "of the image";
  }
  const GuestEnd end = RunGuest({.name = "hello_component", .args = {"h"}, .root = root_});
  EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
  EXPECT_EQ(end.out, "arg h\n");
}

}  // namespace
}  // namespace gantry::wasm
