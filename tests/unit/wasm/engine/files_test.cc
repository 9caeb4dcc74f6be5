// SPDX-License-Identifier: Apache-2.0
// The directories that a guest is given.
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

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// As wasi-libc numbers them.
constexpr uint32_t kNoEntry = 44;
constexpr uint32_t kNotCapable = 76;
constexpr uint32_t kNotPermitted = 63;

class Files : public testing::Test {
 protected:
  Files() {
    char made[] = "/tmp/gantry-files-XXXXXX";
    directory_ = mkdtemp(made);
  }

  ~Files() override { std::filesystem::remove_all(directory_); }

  GuestEnd RunTool(const std::string& what, const std::string& argument,
                   const std::string& there) const {
    return RunGuest(
        {.name = "tool", .args = {"tool", what, argument}, .directories = {{directory_, there}}});
  }

  std::string directory_;
};

TEST_F(Files, AreMadeRenamedLinkedListedAndRemoved) {
  const GuestEnd end = RunTool("files", "/data", "/data");
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0u) << end.err;
  EXPECT_EQ(end.out, "made\n2 bytes\nfolder\nlink\n");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(Files, TheRootIsADirectoryLikeOthers) {
  EXPECT_EQ(RunTool("make", "/file", "/").code, 0u);
  EXPECT_EQ(RunTool("read", "/file", "/").out, "made\n");
  EXPECT_EQ(RunTool("list", "/", "/").out, "file\n");
}

TEST_F(Files, OfADirectoryForReadingNothingIsWritten) {
  std::ofstream(directory_ + "/file") << "there\n";
  EXPECT_EQ(RunTool("read", "/data/file", "/data:ro").out, "there\n");
  const uint32_t made = RunTool("make", "/data/new", "/data:ro").code;
  EXPECT_THAT(made, AnyOf(kNotPermitted, kNotCapable, 69u)) << made;
  EXPECT_NE(RunTool("files", "/data", "/data:ro").code, 0u);
  EXPECT_EQ(RunTool("list", "/data", "/data:ro").out, "file\n");
}

TEST_F(Files, LinksDoNotLeadOut) {
  std::filesystem::create_symlink("/etc/hostname", directory_ + "/absolute");
  std::filesystem::create_symlink("../../etc/hostname", directory_ + "/relative");
  EXPECT_NE(RunTool("read", "/data/absolute", "/data").code, 0u);
  EXPECT_NE(RunTool("read", "/data/relative", "/data").code, 0u);
  EXPECT_NE(RunTool("read", "/data/../../../etc/hostname", "/data").code, 0u);
  EXPECT_EQ(RunTool("read", "/etc/hostname", "/data").code, kNoEntry + 0u);
}

TEST_F(Files, ADirectoryThatIsNotThereIsNamed) {
  const GuestEnd end = RunGuest(
      {.name = "tool", .args = {"tool"}, .directories = {{directory_ + "/none", "/data"}}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_SYSTEM);
  EXPECT_THAT(end.why, AllOf(HasSubstr(directory_ + "/none"),
                             AnyOf(HasSubstr("No such file"), HasSubstr("ENOENT"))));
}

}  // namespace
}  // namespace gantry::wasm
