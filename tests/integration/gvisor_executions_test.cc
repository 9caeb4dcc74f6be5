// SPDX-License-Identifier: Apache-2.0
//
// Pods without runsc's command line: what is executed for one, and one that goes on when
// runsc is replaced.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "tests/harness/execution_trace.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

class GvisorExecutions : public GvisorTest {
 protected:
  static bool IsOfRunsc(const Execution& execution) {
    return execution.program.find("runsc") != std::string::npos ||
           execution.program.find("gvisor_sentry") != std::string::npos ||
           execution.words.front().find("runsc") != std::string::npos;
  }

  /// How many of runsc's executions are of this subcommand.
  static size_t Count(const std::vector<Execution>& executions, const std::string& subcommand) {
    return static_cast<size_t>(std::ranges::count_if(executions, [&](const Execution& execution) {
      return IsOfRunsc(execution) && std::ranges::contains(execution.words, subcommand);
    }));
  }

  /// All that can be asked of a pod of two containers, from its beginning to its end.
  static void LiveOnce(const std::string& root, const std::string& further) {
    StartDetached(root, {"sleep", "1000"}, AsRoot(root));
    StartDetached(further, {"sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"},
                  AsFurther(root));
    for (const std::string& id : {root, further}) {
      EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).status, 4);
      EXPECT_EQ(Ctr({"tasks", "ps", id}).status, 0);
      Ctr({"tasks", "metrics", id});
      EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
      EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
    }
    EXPECT_EQ(Ctr({"tasks", "kill", further}).status, 0);
    EXPECT_TRUE(WaitForState(further, "STOPPED"));
    Remove(further);
    Remove(root);
  }
};

TEST_F(GvisorExecutions, AreOfSentryAndGofersAlone) {
  // A canary is run once for the build, not for a pod.
  ASSERT_EQ(RunContainer({"--rm"}, Id("-before"), {"true"}).status, 0);
  ExecutionTrace trace(node());
  LiveOnce(Id("-root"), Id("-further"));
  const std::vector<Execution> executions = trace.Finish();
  EXPECT_EQ(Count(executions, "boot"), 1U);
  EXPECT_EQ(Count(executions, "gofer"), 2U);
  for (const Execution& execution : executions) {
    EXPECT_TRUE(std::ranges::contains(execution.words, "boot") ||
                std::ranges::contains(execution.words, "gofer"))
        << execution.Text();
  }
}

/// A pod whose runsc is a copy, which something happens to while it runs.
class GvisorReplaced : public GvisorTest {
 protected:
  void SetUp() override {
    GvisorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    // One for all of them: the engine keeps what it knows of each.
    folder_ = settings().root + "/own-runsc";
    std::filesystem::create_directories(folder_);
    Put(Runsc());
    options_ = WithOptions("binary_name = \"" + copy() + "\"\n");
    StartDetached(Id("-root"), {"sleep", "1000"}, Flags(AsRoot(Id("-root"))));
  }

  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
    GvisorTest::TearDown();
  }

  std::string copy() const { return folder_ + "/runsc"; }

  Words Flags(Words flags) const {
    flags.insert(flags.end(), options_.begin(), options_.end());
    return flags;
  }

  /// In one step, as package managers do it.
  void Put(const std::string& runsc) const {
    std::filesystem::copy_file(runsc, copy() + ".new");
    std::filesystem::rename(copy() + ".new", copy());
  }

  void ExpectAllGoesOn() {
    const std::string root = Id("-root");
    const std::string further = Id("-further");
    Program program = StartScript(Flags(AsFurther(root)), further, "sleep 1000");
    EXPECT_EQ(Exec(further, {"sh", "-c", "exit 4"}).status, 4);
    EXPECT_EQ(Exec(root, {"sh", "-c", "exit 6"}).status, 6);
    EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", further}).status, 0);
    EXPECT_EQ(program.Wait(), 137) << program.err();
    Remove(root);
  }

 private:
  std::string folder_;
  Words options_;
};

TEST_F(GvisorReplaced, ByTheOtherReleaseGoesOn) {
  if (const std::string missing = settings().no_runsc(
          std::filesystem::path(OtherRunsc()).parent_path().parent_path().filename());
      !missing.empty()) {
    Remove(Id("-root"));
    GTEST_SKIP() << missing;
  }
  Put(OtherRunsc());
  ExpectAllGoesOn();
  // A new pod is of the new release.
  const std::string next = Id("-next");
  const Output output = RunContainer(Flags({"--rm"}), next, {"sh", "-c", "exit 3"});
  EXPECT_EQ(output.status, 3) << output.Text();
}

TEST_F(GvisorReplaced, ByNothingGoesOn) {
  std::filesystem::remove(copy());
  ExpectAllGoesOn();
}

TEST_F(GvisorReplaced, AndTheEngineKilledGoesOn) {
  std::filesystem::remove(copy());
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectAllGoesOn();
}

}  // namespace
}  // namespace gantry::e2e
