// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/backend_tool.h"

#include <stdlib.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/ctl/commands.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

/// A folder with the programs of gantry.
class BackendTool : public testing::Test {
 protected:
  void SetUp() override { setenv("GANTRY_LIBEXEC_DIR", dir_.path().c_str(), 1); }

  void TearDown() override { unsetenv("GANTRY_LIBEXEC_DIR"); }

  void Have(const std::string& name, const std::string& script, mode_t mode = 0755) {
    ASSERT_TRUE(WriteFile(dir_.path() + "/" + name, "#!/bin/sh\n" + script + "\n", mode));
  }

  /// What gantryctl says where it does not become another program.
  static std::string ErrorOf(const std::vector<std::string>& words) {
    std::ostringstream out;
    std::ostringstream err;
    static_cast<void>(RunCommand(words, out, err));
    return err.str();
  }

  os::TempDir dir_ = *os::TempDir::Create();
};

TEST_F(BackendTool, GetsTheWordsAfterItsName) {
  Have("gantryctl-mine", R"(echo "$# $1 $2" >&2; exit 7)");
  EXPECT_EXIT(RunCommand({"mine", "--json", "two words"}, std::cout, std::cerr), ExitedWithCode(7),
              "2 --json two words");
}

TEST_F(BackendTool, IsNoOtherProgram) {
  Have("gantryctl-ps", "exit 7");
  EXPECT_THAT(ErrorOf({"ps", "too", "many"}), HasSubstr("'ps' takes 0")) << "gantryctl's own";
  EXPECT_THAT(ErrorOf({"mine"}), HasSubstr("there is no command 'mine'"));
  Have("gantryctl-mine", "exit 7", 0644);
  EXPECT_THAT(ErrorOf({"mine"}), HasSubstr("there is no command 'mine'"));
  Have("gantryctl-", "exit 7");
  EXPECT_THAT(ErrorOf({"../gantryctl-x"}), HasSubstr("there is no command"));
  EXPECT_EQ(RunBackendTool({}, std::cerr), std::nullopt);
  EXPECT_EQ(RunBackendTool({"--json"}, std::cerr), std::nullopt);
}

TEST_F(BackendTool, SaysThatItCannotBeExecuted) {
  ASSERT_TRUE(WriteFile(dir_.path() + "/gantryctl-mine", "no program", 0755));
  EXPECT_THAT(ErrorOf({"mine"}), HasSubstr("gantryctl-mine': ENOEXEC"));
}

}  // namespace
}  // namespace gantry::ctl
