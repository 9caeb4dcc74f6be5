// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/ctl/run_tool.h"
#include "core/os/fs.h"
#include "tests/unit/ctl/fake_backend.h"

namespace gantry::ctl {
namespace {

using testing::HasSubstr;

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir.has_value());
    dir_ = std::move(*dir);
    node_.find_backend = [this](const std::string&) -> Result<SandboxBackend*> {
      return &backend_;
    };
  }

  std::string File(const std::string& name, const std::string& text) {
    EXPECT_TRUE(ReplaceFile(dir_.path() + "/" + name, text, 0755).has_value());
    return dir_.path() + "/" + name;
  }

  static config::Config ConfigOf(const std::string& text) {
    auto config = config::Parse(text, "g.yaml");
    EXPECT_TRUE(config.has_value()) << config.error().message;
    return config.value_or(config::Defaults());
  }

  os::TempDir dir_;
  FakeBackend backend_;
  Node node_;
};

TEST_F(CheckTest, ShowsTheHandlersOfAConfiguration) {
  const auto text = CheckConfig(ConfigOf("default_handler: runc\n"), node_);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("g.yaml: in order"));
  EXPECT_THAT(*text, HasSubstr("runc (default)  runc     {}       yes"));
}

TEST_F(CheckTest, SaysWhereABackendRefusesAnOption) {
  backend_.refused = R"({"Speed":5})";
  const auto text =
      CheckConfig(ConfigOf("handlers: {fast: {backend: x,\n  options: {Speed: 5}}}\n"), node_);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().message, "g.yaml:2: handler 'fast': check option 'Speed': no such key");
}

TEST_F(CheckTest, FailsWhereABackendCannotBeLoaded) {
  node_.find_backend = [](const std::string& name) -> Result<SandboxBackend*> {
    return Fail(Code::kNotFound, "load backend '{}': no such file", name);
  };
  const auto text =
      CheckConfig(ConfigOf("default_handler: a\nhandlers:\n  a: {backend: mine}\n"), node_);
  ASSERT_FALSE(text.has_value()) << *text;
  EXPECT_EQ(text.error().code, Code::kNotFound);
  EXPECT_EQ(text.error().message, "g.yaml:3: handler 'a': load backend 'mine': no such file");
}

TEST_F(CheckTest, TellsPluginsFromConfigurations) {
  EXPECT_TRUE(LooksLikePlugin("/nonexistent/x.so"));
  EXPECT_TRUE(LooksLikePlugin(File("elf",
                                   "\x7f"
                                   "ELF....")));
  EXPECT_FALSE(LooksLikePlugin(File("g.yaml", "log: {}\n")));
}

TEST_F(CheckTest, NeedsThePluginsName) {
  const auto text = CheckPlugin("/proc/self/exe", File("plugin.so", ""), "", config::Defaults());
  ASSERT_FALSE(text.has_value());
  EXPECT_THAT(text.error().message, HasSubstr("--name"));
}

TEST_F(CheckTest, GivesTheFirstLineOfATool) {
  const auto line = FirstLineOf({File("tool", "#!/bin/sh\necho \"one $1\"\necho two\n"), "x"});
  ASSERT_TRUE(line.has_value()) << line.error().message;
  EXPECT_EQ(*line, "one x");
}

TEST_F(CheckTest, ReportsToolsThatFailHangOrFlood) {
  EXPECT_EQ(FirstLineOf({File("fails", "#!/bin/sh\nexit 3\n")}).error().code,
            Code::kFailedPrecondition);
  EXPECT_EQ(
      FirstLineOf({File("hangs", "#!/bin/sh\nexec sleep 100\n")}, std::chrono::milliseconds(50))
          .error()
          .code,
      Code::kDeadlineExceeded);
  EXPECT_FALSE(FirstLineOf({File("floods", "#!/bin/sh\nexec cat /dev/zero\n")}).has_value());
  EXPECT_FALSE(FirstLineOf({dir_.path() + "/none"}).has_value());
}

}  // namespace
}  // namespace gantry::ctl
