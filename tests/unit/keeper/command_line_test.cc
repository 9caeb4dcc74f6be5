// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gmock/gmock.h>

#include "core/keeper/options.h"

namespace gantry::keeper {
namespace {

Result<CommandLine> Parse(std::vector<std::string> arguments) {
  return ParseCommandLine(arguments);
}

TEST(KeeperCommandLine, TakesBothForms) {
  const auto line = Parse({"--run-dir", "/a", "--engine=/b", "--control-fd", "7", "--foreground"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->run_dir, "/a");
  EXPECT_EQ(line->engine, "/b");
  EXPECT_EQ(line->control_fd, 7);
  EXPECT_TRUE(line->foreground);
  EXPECT_FALSE(line->check);
  EXPECT_TRUE(Parse({"--check", "--run-dir=/a"})->check);
}

TEST(KeeperCommandLine, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(Parse({"--nope", "1"}));
  EXPECT_FALSE(Parse({"--run-dir"}));
  EXPECT_FALSE(Parse({"--control-fd", "x"}));
  EXPECT_FALSE(Parse({"--control-fd", "1"}));
}

}  // namespace
}  // namespace gantry::keeper
