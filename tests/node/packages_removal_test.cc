// SPDX-License-Identifier: Apache-2.0
//
// The Debian packages: a removal ends no container, and a purge leaves nothing.
#include <signal.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/node/harness/packages.h"

namespace gantry::node {
namespace {

using testing::HasSubstr;

class PackagesRemoval : public PackagesTest {
 protected:
  /// Of the file names of a package, and of what gantry makes.
  static std::vector<std::string> Left() {
    std::vector<std::string> left;
    for (const char* folder : {"/etc", "/run", "/usr/bin", "/usr/lib/systemd", "/usr/libexec",
                               "/var/lib/gantry", "/var/lib/systemd"}) {
      for (const std::string& path : e2e::FindNames(folder, "gantry")) {
        // Of the tests themselves.
        if (!path.contains("gantry-node")) {
          left.push_back(path);
        }
      }
    }
    return left;
  }

  static std::vector<e2e::HostProcess> Programs() {
    return e2e::Processes([](const e2e::HostProcess& process) {
      return process.name == "gantryd" || process.name == "gantry-keeper";
    });
  }
};

TEST_F(PackagesRemoval, LeavesAContainerThatRunsAndWhatServesIt) {
  ASSERT_NO_FATAL_FAILURE(Have(kNow));
  ASSERT_NO_FATAL_FAILURE(HaveKept());
  const pid_t pid = KeptPid();
  const pid_t keeper = Keeper();
  const e2e::Output removed = Apt("remove");
  EXPECT_EQ(removed.status, 0) << removed.Text();
  EXPECT_THAT(removed.out + removed.err, HasSubstr("containers of gantry still run"));
  EXPECT_EQ(Version(), "");
  EXPECT_EQ(KeptPid(), pid);
  EXPECT_EQ(Exec(kept(), {"sh", "-c", "exit 5"}).status, 5);
  const auto programs = Programs();
  EXPECT_EQ(programs.size(), 2U) << e2e::Describe(programs);
  EXPECT_EQ(kill(keeper, 0), 0);
}

TEST_F(PackagesRemoval, AnInstallationAfterwardsTakesItUpAgain) {
  ASSERT_EQ(Version(), "") << "the test before did not remove it";
  ASSERT_EQ(FindTask(kept()).state, "RUNNING");
  const pid_t pid = KeptPid();
  const auto keepers = e2e::Processes(
      [](const e2e::HostProcess& process) { return process.name == "gantry-keeper"; });
  ASSERT_EQ(keepers.size(), 1U);
  ASSERT_NO_FATAL_FAILURE(Have(kNow));
  EXPECT_EQ(Keeper(), keepers.front().pid);
  EXPECT_TRUE(Runs(Engine(), kInstalledEngine));
  EXPECT_EQ(Exec(kept(), {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(KeptPid(), pid);
}

TEST_F(PackagesRemoval, APurgeWithoutContainersLeavesNothing) {
  ASSERT_NO_FATAL_FAILURE(Have(kNow));
  Remove(kept());
  const e2e::Output run = CtrRun(Id(), {"echo", "hello"}, {"--rm"});
  EXPECT_EQ(run.out, "hello\n") << run.Text();
  const e2e::Output purged = Apt("purge");
  EXPECT_EQ(purged.status, 0) << purged.Text();
  EXPECT_THAT(Left(), testing::IsEmpty());
  EXPECT_TRUE(Programs().empty()) << e2e::Describe(Programs());
  EXPECT_EQ(ActiveState(kContainerdUnit), "active");
}

}  // namespace
}  // namespace gantry::node
