// SPDX-License-Identifier: Apache-2.0
//
// tools/lib/suites.sh, with a program whose tests fail in each way: what is passed,
// failed and flaky, and what is said of it. docs/flaky.md has the rule.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "core/os/fs.h"
#include "tests/harness/program.h"

namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A tree with the scripts of this one and logs of its own.
class Suites : public ::testing::Test {
 protected:
  Suites() : dir_(*gantry::os::TempDir::Create()) {
    fs::create_directories(root() / "state");
    fs::create_directory_symlink(fs::path(GANTRY_SOURCE_DIR) / "tools", root() / "tools");
  }

  fs::path root() const { return dir_.path(); }

  /// `run_gtest` with the program's tests that the filter names, and the summary.
  void Run(const std::string& filter) {
    RunScript("run_gtest some " GANTRY_SOMETIMES
              " \"$LOG_DIR/suite-some.log\" 120 --gtest_color=no --gtest_filter='" +
              filter + "'\n");
  }

  void RunScript(const std::string& script) {
    const std::string all = "set -euo pipefail\nunset \"${!GTEST_@}\"\n. '" +
                            (root() / "tools/lib/ui.sh").string() +
                            "'\n. \"$GANTRY_ROOT/tools/lib/suites.sh\"\nbegin_results\n" + script +
                            "demand_a_pass some\nsummary\n";
    gantry::e2e::Program::Options options;
    options.env = {{"SOMETIMES", root() / "state"}, {"GANTRY_CACHE", root() / "cache"}};
    gantry::e2e::Program bash({"bash", "-c", all}, options);
    const gantry::e2e::Output output = bash.Finish(gantry::e2e::kLong);
    status_ = output.status;
    said_ = output.out;
    EXPECT_EQ(output.err, "");
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(root() / "build/logs" / name).rdbuf();
    return text.str();
  }

  /// Without the milliseconds.
  std::string Results() const {
    return std::regex_replace(Read("results"), std::regex(" [0-9]+\n"), "\n");
  }

  gantry::os::TempDir dir_;
  int status_ = -1;
  std::string said_;
};

TEST_F(Suites, CountWhatIsNotFlaky) {
  Run("Sometimes.Passes*:Sometimes.IsSkipped");
  EXPECT_EQ(Results(),
            "passed some Sometimes.Passes\n"
            "passed some Sometimes.PassesWithALineUnfinished\n"
            "skipped some Sometimes.IsSkipped\n");
  EXPECT_THAT(said_, EndsWith("flaky: 0\nsummary: 2 passed, 0 failed, 1 skipped\n"));
  EXPECT_EQ(status_, 0);
}

TEST_F(Suites, CallAFailureFlakyThatDoesNotComeAgain) {
  Run("Sometimes.Passes:Sometimes.FailsOnce");
  EXPECT_EQ(Results(),
            "passed some Sometimes.Passes\n"
            "flaky some Sometimes.FailsOnce\n");
  EXPECT_THAT(said_,
              AllOf(HasSubstr("the first time"), Not(HasSubstr("\nfailed:\n")),
                    ContainsRegex("flaky: 1\n  some Sometimes.FailsOnce: "
                                  "tests/unit/tools/sometimes.cc:[0-9]+ Value of: FirstTime..\n"),
                    EndsWith("summary: 1 passed, 0 failed, 0 skipped\n")));
  EXPECT_THAT(Read("suite-some.log"), HasSubstr("the first time"));
  EXPECT_EQ(status_, 0);
}

TEST_F(Suites, CallAFailureThatComesAgainAFailure) {
  Run("Sometimes.Passes:Sometimes.FailsTwice");
  EXPECT_EQ(Results(),
            "passed some Sometimes.Passes\n"
            "failed some Sometimes.FailsTwice\n");
  EXPECT_THAT(said_, EndsWith("flaky: 0\nsummary: 1 passed, 1 failed, 0 skipped\n"));
  EXPECT_THAT(said_, ContainsRegex("failed:\n  some Sometimes.FailsTwice: "
                                   "tests/unit/tools/sometimes.cc:[0-9]+ Failed\nflaky: 0\n"));
  EXPECT_THAT(said_, HasSubstr("the first time"));
  EXPECT_THAT(Read("suite-some.log"), HasSubstr("again"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, DoNotTakeASkippedTestForOneThatPassed) {
  Run("Sometimes.Passes:Sometimes.FailsAndThenIsSkipped");
  EXPECT_THAT(Results(), HasSubstr("failed some Sometimes.FailsAndThenIsSkipped\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, RunWhatACrashKeptFromRunning) {
  Run("Sometimes.Passes:Sometimes.CrashesOnce:Sometimes.RunsAfterAllThese");
  EXPECT_EQ(Results(),
            "passed some Sometimes.Passes\n"
            "flaky some Sometimes.CrashesOnce\n"
            "passed some Sometimes.RunsAfterAllThese\n");
  EXPECT_THAT(said_, HasSubstr("goes down in the middle of a line"));
  EXPECT_EQ(status_, 0);
}

TEST_F(Suites, CallACrashThatComesAgainAFailure) {
  Run("Sometimes.Crashes*:Sometimes.RunsAfterAllThese");
  EXPECT_EQ(Results(),
            "flaky some Sometimes.CrashesOnce\n"
            "failed some Sometimes.CrashesTwice\n"
            "passed some Sometimes.RunsAfterAllThese\n");
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, SeeThatATestEndedTheProgramAsIfAllWereWell) {
  Run("Sometimes.EndsTheProgramOnce:Sometimes.RunsAfterAllThese");
  EXPECT_EQ(Results(),
            "flaky some Sometimes.EndsTheProgramOnce\n"
            "passed some Sometimes.RunsAfterAllThese\n");
}

TEST_F(Suites, TreatATestThatHangsLikeOneThatCrashes) {
  // In place of the time that passes: the program says when it hangs.
  RunScript(
      "mkfifo \"$SOMETIMES/hanging\"\n"
      "timeout() {\n"
      "  local said program status=0\n"
      "  shift 3\n"
      "  \"$@\" & program=$!\n"
      "  if [ -p \"$SOMETIMES/hanging\" ]; then\n"
      "    read -r said <\"$SOMETIMES/hanging\" || true\n"
      "    rm \"$SOMETIMES/hanging\"\n"
      "    kill -9 $program\n"
      "    wait $program || true\n"
      "    return 124\n"
      "  fi\n"
      "  wait $program\n"
      "}\n"
      "run_gtest some " GANTRY_SOMETIMES
      " \"$LOG_DIR/suite-some.log\" 120 --gtest_color=no "
      "--gtest_filter=Sometimes.HangsOnce:Sometimes.RunsAfterAllThese\n");
  EXPECT_EQ(Results(),
            "flaky some Sometimes.HangsOnce\n"
            "passed some Sometimes.RunsAfterAllThese\n");
  EXPECT_THAT(Read("suite-some.log"), HasSubstr("[  ENDED   ] with status 124\n"));
}

TEST_F(Suites, NeverCallWhatASanitizerFoundFlaky) {
  Run("Sometimes.Passes:Sometimes.HasARaceOnce");
  EXPECT_THAT(Results(), HasSubstr("failed some Sometimes.HasARaceOnce\n"));
  EXPECT_THAT(Read("suite-some.log"), Not(HasSubstr("[  AGAIN   ]")));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, NeverCallATestFlakyInWhichTheSecondRunHasARace) {
  Run("Sometimes.Passes:Sometimes.FailsAndThenHasARace");
  EXPECT_THAT(Results(), HasSubstr("failed some Sometimes.FailsAndThenHasARace\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, BlameTestAndProgramWhenTheLogEndsWithinATest) {
  // As it does when the guest of a suite goes down.
  RunScript(
      "printf '[ RUN      ] A.B\\n[       OK ] A.B (0 ms)\\n[ RUN      ] A.C\\nwords' "
      ">\"$LOG_DIR/suite-some.log\"\n"
      "count_gtest some program \"$LOG_DIR/suite-some.log\"\n");
  EXPECT_EQ(Results(),
            "passed some A.B\n"
            "failed some A.C\n"
            "failed some program(ended-with-status-?)\n");
  EXPECT_THAT(said_, HasSubstr("      words\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, RunNothingAgainWhenManyFail) {
  Run("Of/Several.FailsOnce/*:Sometimes.Passes");
  EXPECT_THAT(said_, EndsWith("flaky: 0\nsummary: 1 passed, 6 failed, 0 skipped\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, RunFiveAgain) {
  Run("Of/Several.FailsOnce/*:-*/5");
  EXPECT_THAT(said_, EndsWith("summary: 0 passed, 0 failed, 0 skipped\n"));
  EXPECT_THAT(said_, HasSubstr("flaky: 5\n  some Of/Several.FailsOnce/0: tests/"));
  EXPECT_EQ(status_, 0);
}

TEST_F(Suites, CountTheFailuresOfAllProgramsOfASuite) {
  // The filter is in the environment: both programs have it.
  RunScript(
      "mkdir \"$SOMETIMES/2\"\n"
      "printf '#!/bin/sh\\nSOMETIMES=$SOMETIMES/2 exec %s \"$@\"\\n' " GANTRY_SOMETIMES
      " >\"$SOMETIMES/other\"\n"
      "chmod 755 \"$SOMETIMES/other\"\n"
      "export GTEST_FILTER='Sometimes.Passes:*/0:*/1:*/2'\n"
      "run_gtests some 120 " GANTRY_SOMETIMES " \"$SOMETIMES/other\"\n");
  EXPECT_THAT(said_, EndsWith("flaky: 0\nsummary: 2 passed, 6 failed, 0 skipped\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, BlameTheProgramForACrashOutsideOfItsTests) {
  Run("Prepared.*:Sometimes.Passes");
  EXPECT_THAT(Results(), HasSubstr("passed some Sometimes.Passes\n"
                                   "failed some sometimes(ended-with-status-137)\n"
                                   "failed some sometimes(1-tests-did-not-run)\n"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, CallARuleOfTheKitFlakyThatIsMetTheSecondTime) {
  // In place of gantry-backend-test. Its second run is of one rule.
  RunScript(
      ". \"$GANTRY_ROOT/tools/lib/kit.sh\"\n"
      "kit_backend_test() {\n"
      "  if [ \"$#\" -gt 1 ]; then\n"
      "    printf '%s  %s\\n' \"$3\" \"$([ \"$3\" = A.Once ] && echo met || echo not met)\"\n"
      "    [ \"$3\" = A.Once ]\n"
      "  else\n"
      "    printf 'A.Good   met\\nA.Once   not met\\nA.Twice  not met\\n'\n"
      "    printf 'A.Other  not supported (so)\\n\\nA.Once is not met:\\n    why\\n'\n"
      "    printf '\\n1 met, 2 not met, 1 not supported\\n'\n"
      "    return 1\n"
      "  fi\n"
      "}\n"
      "kit_rules some\n"
      "kit_again rules-some\n"
      "kit_count rules-some\n");
  EXPECT_THAT(Results(), StartsWith("passed kit some:A.Good\n"
                                    "flaky kit some:A.Once\n"
                                    "failed kit some:A.Twice\n"
                                    "skipped kit some:A.Other\n"));
  EXPECT_THAT(said_, HasSubstr("          why\n"));
}

TEST_F(Suites, SayWhatAStepThatFailedSaidFirst) {
  RunScript(
      "fail() { printf '[1/2] Building error.cc.o\\na.cc:1:2: error: <b>\\n  ^\\n'; false; }\n"
      "step build-some 'a build' fail || record_step some build\n");
  EXPECT_EQ(Results(), "failed some build\n");
  EXPECT_THAT(said_, HasSubstr("failed:\n  some build: a.cc:1:2: error: <b>\n"));
  EXPECT_THAT(Read("junit.xml"), HasSubstr("a.cc:1:2: error: &lt;b&gt;"));
  EXPECT_EQ(status_, 1);
}

TEST_F(Suites, SayWhatAStepThatFailedSaidLast) {
  RunScript(
      "fail() { printf 'one\\ntwo\\n\\n'; false; }\n"
      "step some-images 'images' fail || record_step some images\n");
  EXPECT_THAT(said_, HasSubstr("failed:\n  some images: two\n"));
}

TEST_F(Suites, LeaveTheirResultsAsXml) {
  Run("Sometimes.Passes:Sometimes.IsSkipped:Sometimes.FailsOnce:Sometimes.FailsTwice:"
      "Sometimes.FailsAndThenIsSkipped:Of/Several.FailsOnce/0");
  const std::string xml = std::regex_replace(Read("junit.xml"), std::regex("time=\"[0-9.]+\""), "");
  EXPECT_THAT(
      xml, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<testsuites name=\"gantry\" tests=\"6\" failures=\"2\" skipped=\"1\">\n"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"Sometimes\" name=\"Passes\" ></testcase>\n"));
  EXPECT_THAT(xml, HasSubstr("name=\"IsSkipped\" ><skipped/></testcase>\n"));
  EXPECT_THAT(xml, HasSubstr("name=\"FailsOnce\" ><flakyFailure message=\"failed, and passed when "
                             "run again\">      [ RUN      ] Sometimes.FailsOnce\n"));
  EXPECT_THAT(xml, HasSubstr("name=\"FailsTwice\" ><failure message=\"failed\">"));
  EXPECT_THAT(xml, HasSubstr("classname=\"Of/Several\" name=\"FailsOnce/0\" ><flakyFailure"));
  // The failure's own words: no markup.
  EXPECT_THAT(xml, AllOf(HasSubstr("&lt;b&gt; &amp; ?[0m"), Not(HasSubstr("<b>"))));
}

TEST_F(Suites, FailWithoutATest) {
  Run("Nothing.*");
  EXPECT_EQ(Results(), "failed some no-test-passed\n");
  EXPECT_EQ(status_, 1);
}

}  // namespace
