// SPDX-License-Identifier: Apache-2.0
//
// How sandboxes are started with a build, by what its help and its canary show.
#include "plugins/gvisor/launch/runsc_registry.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/launch/create.h"
#include "plugins/gvisor/launch/launcher.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunscsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    path_ = FakeRunsc().WriteTo(dir_.path());
  }

  Result<std::shared_ptr<const Launcher>> Get() {
    return runscs_.GetLauncher(path_, context_, dir_.path() + "/root", wanted_);
  }

  /// Why it is by `runsc create`; empty: it is not.
  std::string Reason() {
    const auto launcher = Get();
    EXPECT_TRUE(launcher) << launcher.error().message;
    return launcher ? (*launcher)->Reason() : "(error)";
  }

  std::vector<std::string> Warnings() const {
    std::vector<std::string> found;
    for (const std::string& line : context_.log) {
      if (line.starts_with("pods are started by")) {
        found.push_back(line);
      }
    }
    return found;
  }

  os::TempDir dir_;
  std::string path_;
  FakeSandboxContext context_;
  CanaryRequest wanted_{.platform = "systrap", .directories = {}};
  Status shown_;
  int canaries_ = 0;
  RunscRegistry runscs_{[this](SandboxContext&, const Runsc&, const CanaryRequest&) {
    ++canaries_;
    return shown_;
  }};
};

TEST_F(RunscsTest, AProvenBuildIsStartedDirectly) {
  EXPECT_EQ(Reason(), "");
  EXPECT_THAT(Warnings(), IsEmpty());
  EXPECT_TRUE(runscs_.GetProven(path_, context_, dir_.path() + "/root", wanted_));
}

TEST_F(RunscsTest, OneWhoseCanaryFailsIsNot) {
  shown_ = Fail(Code::kFailedPrecondition, "boot the sentry: no");
  EXPECT_EQ(Reason(), "boot the sentry: no");
  EXPECT_EQ(Reason(), "boot the sentry: no");
  EXPECT_EQ(canaries_, 1);
  EXPECT_THAT(Warnings(),
              ElementsAre(Format("pods are started by '{} create' (platform systrap), which takes "
                                 "longer, and none is pre-booted: boot the sentry: no",
                                 path_)));
  const auto proven = runscs_.GetProven(path_, context_, dir_.path() + "/root", wanted_);
  ASSERT_FALSE(proven);
  EXPECT_EQ(proven.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(proven.error().message, HasSubstr("boot the sentry: no"));
}

TEST_F(RunscsTest, EachPlatformAndBuildIsToldOf) {
  shown_ = Fail(Code::kFailedPrecondition, "no");
  EXPECT_EQ(Reason(), "no");
  wanted_.platform = "kvm";
  EXPECT_EQ(Reason(), "no");
  EXPECT_EQ(Warnings().size(), 2U);
  // Another file in its place.
  ASSERT_TRUE(ReplaceFile(path_, *ReadFile(path_, 1 << 20) + "\n# later\n", 0755));
  EXPECT_EQ(Reason(), "no");
  EXPECT_EQ(Warnings().size(), 3U);
}

TEST_F(RunscsTest, WhatShowsNothingDecidesNothing) {
  shown_ = Fail(Code::kDeadlineExceeded, "no time");
  const auto launcher = Get();
  ASSERT_FALSE(launcher);
  EXPECT_EQ(launcher.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(RunscsTest, OneThatLacksAFlagIsNotAndHasNoCanary) {
  path_ = FakeRunsc{.lacks = "--controller-fd"}.WriteTo(dir_.path());
  EXPECT_EQ(Reason(),
            Format("'{}': this build has no 'boot --controller-fd', which gantry needs", path_));
  EXPECT_EQ(canaries_, 0);
  EXPECT_EQ(Warnings().size(), 1U);
}

TEST_F(RunscsTest, NotAllThatWereEverNamedStayOpen) {
  std::vector<std::weak_ptr<const Runsc>> named;
  for (int i = 0; i < 20; ++i) {
    const std::string folder = dir_.path() + "/" + std::to_string(i);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const auto runsc = runscs_.Get(FakeRunsc().WriteTo(folder));
    ASSERT_TRUE(runsc) << runsc.error().message;
    named.push_back(*runsc);
  }
  EXPECT_EQ(std::ranges::count_if(named, [](const auto& one) { return !one.expired(); }), 16);
}

TEST_F(RunscsTest, WhatACreateHasLeftIsRemoved) {
  const std::string bundle = dir_.path() + "/bundle";
  ASSERT_EQ(mkdir(bundle.c_str(), 0700), 0);
  EXPECT_TRUE(RemoveCreated(context_, bundle, std::chrono::seconds(1)));
  ASSERT_TRUE(WriteFile(bundle + "/config.json", "{}", 0600));
  ASSERT_EQ(mkdir((bundle + "/runsc").c_str(), 0700), 0);
  ASSERT_TRUE(WriteFile(bundle + "/runsc/c1_sandbox:c1.state", "{}", 0600));
  EXPECT_TRUE(RemoveCreated(context_, bundle, std::chrono::seconds(1)));
  EXPECT_THAT(NamesIn(bundle), ElementsAre("config.json"));
}

}  // namespace
}  // namespace gantry::gvisor
