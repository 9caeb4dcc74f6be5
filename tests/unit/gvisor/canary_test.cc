// SPDX-License-Identifier: Apache-2.0
//
// Canaries with programs that stand for runsc, and with runsc itself where it is there. Needs
// root.
#include "plugins/gvisor/launch/canary.h"

#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "plugins/gvisor/launch/runsc_registry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// The real ones need a tenth of it.
constexpr std::chrono::seconds kLimit{20};
/// Of programs that hang.
constexpr std::chrono::milliseconds kShort{200};

constexpr const char* kGoodGofer = "say mounts-fd '[]'; exec sleep 1000";

class Canary : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    wanted_ = {.platform = "systrap", .directories = {dir_.path()}, .limit = kLimit};
  }

  /// What is said of it; empty: it works.
  std::string Prove(const std::string& path) {
    const auto runsc = ProbeRunsc(path);
    if (!runsc) {
      return runsc.error().message;
    }
    const auto before = NamesIn(dir_.path());
    const Status proved = ProveRunsc(context_, **runsc, wanted_);
    EXPECT_EQ(context_.Alive(), 0U);
    EXPECT_EQ(NamesIn(dir_.path()), before);
    EXPECT_THAT(context_.stored, IsEmpty());
    EXPECT_EQ(context_.blob, "");
    code_ = proved ? Code::kOk : proved.error().code;
    return proved ? "" : proved.error().message;
  }

  os::TempDir dir_;
  FakeSandboxContext context_;
  CanaryRequest wanted_;
  Code code_ = Code::kOk;
};

TEST_F(Canary, SaysWhatASentrySaidThatDoesNotBoot) {
  const FakeRunsc fake{
      .boot = R"(say log-fd '{"msg":"flag provided but not defined: -spec-fd"}'; exit 128)",
      .gofer = kGoodGofer};
  const std::string path = fake.WriteTo(dir_.path());
  EXPECT_EQ(Prove(path), "prove '" + path +
                             "' by a canary sandbox: boot the sentry: it ended with 128: flag "
                             "provided but not defined: -spec-fd");
  EXPECT_EQ(code_, Code::kFailedPrecondition);
  EXPECT_THAT(context_.Tags(), AllOf(Each(StartsWith("canary/")), testing::SizeIs(2)));
}

TEST_F(Canary, LetsASentryOfAnotherReleaseShowWhetherItStarts) {
  const std::string path = FakeRunsc{.gofer = kGoodGofer}.WriteTo(dir_.path());
  FakeRunsc{.boot = R"(say log-fd "{\"msg\":\"told $GVISOR_ENFORCE_RELEASE\"}"; exit 128)",
            .version = "next"}
      .WriteAsSidecar(dir_.path());
  EXPECT_THAT(Prove(path), HasSubstr("boot the sentry: it ended with 128: told SKIP:fake"));
}

constexpr const char* kBusy =
    R"(say log-fd '{"msg":"error setting up chroot: device or resource busy"}'; exit 128)";

/// It happens to one of many: the next one comes through.
TEST_F(Canary, BootsASecondSentryWhereTheFirstFindsItsRootBusy) {
  const FakeRunsc fake{.boot = Format("mkdir {}/first && {{ {}; }}\n"
                                      R"(say log-fd '{{"msg":"another word"}}'; exit 3)",
                                      dir_.path(), kBusy),
                       .gofer = kGoodGofer};
  const std::string path = fake.WriteTo(dir_.path());
  const auto runsc = ProbeRunsc(path);
  ASSERT_TRUE(runsc) << runsc.error().message;
  const Status proved = ProveRunsc(context_, **runsc, wanted_);
  ASSERT_FALSE(proved);
  EXPECT_THAT(proved.error().message, HasSubstr("boot the sentry: it ended with 3: another word"));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_EQ(std::ranges::count(context_.Tags(), "canary/boot"), 2);
  EXPECT_THAT(context_.log, testing::Contains(HasSubstr("another one is booted, once")));
}

TEST_F(Canary, BootsNoThirdSentry) {
  const FakeRunsc fake{.boot = kBusy, .gofer = kGoodGofer};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())),
              HasSubstr("boot the sentry: it ended with 128: error setting up chroot: device or "
                        "resource busy"));
  EXPECT_EQ(std::ranges::count(context_.Tags(), "canary/boot"), 2);
}

/// Both are given logs that have an end: they have room for some 1,000,000 bytes.
TEST_F(Canary, EndsALogThatIsFull) {
  const char* const fill =
      "n=$(fd log-fd); yes | head -c 4000000 >&$n; exit $(($(stat -Lc %s /proc/self/fd/$n) / "
      "100000))";
  FakeRunsc fake{.boot = fill, .gofer = kGoodGofer};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())), HasSubstr("boot the sentry: it ended with 10:"));
  fake.gofer = Format("say mounts-fd $( ({}) >/dev/null 2>&1; echo $?)", fill);
  fake.boot = "read -r size </proc/self/fd/$(fd mounts-fd); exit $size";
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())), HasSubstr("boot the sentry: it ended with 10:"));
}

TEST_F(Canary, SaysWhatAGoferSaidThatEnds) {
  const FakeRunsc fake{.boot = R"(read -r mounts </proc/self/fd/$(fd mounts-fd)
say log-fd '{"msg":"unexpected end of JSON input"}'; exit 128)",
                       .gofer = R"(say log-fd '{"msg":"needs a container id"}'; exit 128)"};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())),
              AllOf(HasSubstr("boot the sentry: it ended with 128: unexpected end of JSON input"),
                    HasSubstr("its gofer says: needs a container id")));
  EXPECT_EQ(code_, Code::kFailedPrecondition);
}

TEST_F(Canary, GivesUpASentryThatHangs) {
  wanted_.limit = kShort;
  const FakeRunsc fake{.boot = "say log-fd 'thinks'; exec sleep 1000", .gofer = kGoodGofer};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())),
              HasSubstr("boot the sentry: it is not ready in time: thinks"));
  EXPECT_EQ(code_, Code::kFailedPrecondition);
}

TEST_F(Canary, GivesUpASentryThatDoesNotListen) {
  const FakeRunsc fake{.boot = "say start-sync-fd x; exec sleep 1000", .gofer = kGoodGofer};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())), HasSubstr("connect to the sentry"));
  EXPECT_EQ(code_, Code::kFailedPrecondition);
}

TEST_F(Canary, ShowsNothingWhereTheCallHasNoTime) {
  context_.time_left = std::chrono::milliseconds(0);
  const FakeRunsc fake{.boot = "exec sleep 1000", .gofer = kGoodGofer};
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())), HasSubstr("not ready in time"));
  EXPECT_EQ(code_, Code::kDeadlineExceeded);
}

TEST_F(Canary, NeedsADirectoryForPrograms) {
  wanted_.directories = {"/proc", dir_.path() + "/none"};
  const FakeRunsc fake;
  EXPECT_THAT(Prove(fake.WriteTo(dir_.path())),
              HasSubstr("in none of '/proc' and so on can it be written"));
  EXPECT_THAT(context_.spawned, IsEmpty());
}

TEST_F(Canary, IsNotRunWithAProgramThatListsNoFlags) {
  RunscRegistry runscs;
  const std::string path = FakeRunsc{.lists_flags = false}.WriteTo(dir_.path());
  const auto runsc = runscs.GetProven(path, context_, dir_.path() + "/root", wanted_);
  ASSERT_FALSE(runsc);
  EXPECT_THAT(runsc.error().message, HasSubstr("it lists none; is it runsc?"));
  EXPECT_THAT(context_.spawned, IsEmpty());
  EXPECT_THAT(NamesIn(dir_.path()), ElementsAre("runsc"));
}

class RealCanary : public Canary, public testing::WithParamInterface<const char*> {};

TEST_P(RealCanary, ProvesTheRelease) {
  const auto path = RealRunsc(GetParam());
  if (!path) {
    GTEST_SKIP() << "runsc " << GetParam() << " is not in the cache: run ./run setup e2e";
  }
  EXPECT_EQ(Prove(*path), "");
  EXPECT_THAT(context_.Tags(), ElementsAre(StartsWith("canary/gofer/"), "canary/boot"));
}

TEST_P(RealCanary, RunsOnceForAllEngines) {
  const auto path = RealRunsc(GetParam());
  if (!path) {
    GTEST_SKIP() << "runsc " << GetParam() << " is not in the cache: run ./run setup e2e";
  }
  const std::string root = dir_.path() + "/root";
  for (int engine = 0; engine < 2; ++engine) {
    RunscRegistry runscs;
    const auto runsc = runscs.GetProven(*path, context_, root, wanted_);
    ASSERT_TRUE(runsc) << runsc.error().message;
  }
  EXPECT_EQ(context_.spawned.size(), 2U);
  EXPECT_THAT(NamesIn(root), ElementsAre(StartsWith("gantry-proof-")));
}

INSTANTIATE_TEST_SUITE_P(Releases, RealCanary, testing::Values("20240729", "20260905"));

}  // namespace
}  // namespace gantry::gvisor
