// SPDX-License-Identifier: Apache-2.0
//
// The Debian packages: what is installed is what runs, and no container notices.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/node/harness/load.h"
#include "tests/node/harness/packages.h"

namespace gantry::node {
namespace {

constexpr char kInstalledKeeper[] = "/usr/libexec/gantry/gantry-keeper";

class PackagesLive : public PackagesTest {
 protected:
  /// A release, with kept() running.
  void Begin(const std::string& release) {
    ASSERT_NO_FATAL_FAILURE(Have(release));
    ASSERT_NO_FATAL_FAILURE(HaveKept());
  }
};

TEST_F(PackagesLive, AnInstallationStartsTheUnitsAndRunsAContainer) {
  ASSERT_NO_FATAL_FAILURE(Have(kBefore));
  for (const char* unit : {kKeeperSocket, kEngineUnit}) {
    EXPECT_EQ(ActiveState(unit), "active") << unit;
    EXPECT_EQ(Property(unit, "UnitFileState"), "enabled") << unit;
  }
  const e2e::Output run = CtrRun(Id(), {"echo", "hello"}, {"--rm"});
  EXPECT_EQ(run.status, 0) << run.Text();
  EXPECT_EQ(run.out, "hello\n");
  EXPECT_TRUE(Runs(Keeper(), kInstalledKeeper));
  EXPECT_TRUE(Runs(Engine(), kInstalledEngine));
}

TEST_F(PackagesLive, AnUpgradeUnderLoadFailsNoCallAndLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(kBefore));
  const std::string counts = Id("counts");
  e2e::Program counter = Counter(counts, false);
  ASSERT_TRUE(counter.ReadUntil("line 3.")) << counter.err();
  const pid_t pid = KeptPid();
  const pid_t keeper = Keeper();
  const pid_t engine = Engine();

  Load load(kept(), pid, 1);
  ASSERT_TRUE(load.Works());
  const e2e::Output upgraded = Install(kNow);
  EXPECT_EQ(upgraded.status, 0) << upgraded.Text();
  EXPECT_TRUE(load.Works());
  EXPECT_THAT(load.End(), testing::IsEmpty());

  EXPECT_EQ(Version(), VersionOf(kNow));
  EXPECT_EQ(KeptPid(), pid);
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_NE(Engine(), engine);
  EXPECT_TRUE(Runs(Keeper(), kInstalledKeeper)) << upgraded.Text();
  EXPECT_TRUE(Runs(Engine(), kInstalledEngine)) << upgraded.Text();
  Exec(counts, {"touch", "/stop"});
  EXPECT_EQ(counter.Wait(), 42) << counter.err();
  EXPECT_EQ(Gap(counter.out()), "");
}

TEST_F(PackagesLive, AnEngineThatRefusesLeavesTheOldOneWhichComesBack) {
  ASSERT_NO_FATAL_FAILURE(Begin(kNow));
  const pid_t pid = KeptPid();
  const pid_t keeper = Keeper();
  const e2e::Output refused = Install(kRefuses);
  EXPECT_EQ(refused.status, 0) << refused.Text();
  EXPECT_THAT(refused.out + refused.err, testing::HasSubstr("the engine was not upgraded"));
  EXPECT_EQ(Version(), VersionOf(kRefuses));
  EXPECT_EQ(EngineProgram(), kHeldEngine);
  EXPECT_EQ(Exec(kept(), {"sh", "-c", "exit 5"}).status, 5);

  const pid_t engine = Engine();
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  EXPECT_TRUE(e2e::WaitGone(engine));
  EXPECT_EQ(EngineProgram(), kHeldEngine);
  EXPECT_EQ(Exec(kept(), {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(KeptPid(), pid);
  EXPECT_EQ(Keeper(), keeper);
}

TEST_F(PackagesLive, ADowngradeIsLiveToo) {
  ASSERT_NO_FATAL_FAILURE(Begin(kRefuses));
  const pid_t pid = KeptPid();
  const pid_t keeper = Keeper();
  const e2e::Output downgraded = Install(kBefore);
  EXPECT_EQ(downgraded.status, 0) << downgraded.Text();
  EXPECT_EQ(Version(), VersionOf(kBefore));
  EXPECT_TRUE(Runs(Keeper(), kInstalledKeeper)) << downgraded.Text();
  EXPECT_TRUE(Runs(Engine(), kInstalledEngine)) << downgraded.Text();
  EXPECT_EQ(Exec(kept(), {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(KeptPid(), pid);
  EXPECT_EQ(Keeper(), keeper);
}

}  // namespace
}  // namespace gantry::node
