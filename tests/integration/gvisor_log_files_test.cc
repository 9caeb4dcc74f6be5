// SPDX-License-Identifier: Apache-2.0
//
// The logs that an operator of gVisor knows: debug logs of sentries and gofers, strace, the user
// log, in the files that runsc's patterns name.
#include <signal.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class GvisorLogFiles : public GvisorTest {
 protected:
  void SetUp() override {
    GvisorTest::SetUp();
    folder_ = settings().root + "/" + Id("-logs");
  }

  void TearDown() override {
    // They are the operator's, so nobody else removes them.
    fs::remove_all(folder_);
    GvisorTest::TearDown();
  }

  std::string Log(const std::string& name) const { return ReadText(folder_ + "/" + name); }

  Words WithFlags(const std::string& flags) {
    return WithOptions("[runsc_config]\n" + flags + "\n");
  }

  /// A container that makes a call which a trace shows.
  static void RunTraced(Words flags, const std::string& id) {
    flags.emplace_back("--rm");
    const Output output = RunContainer(flags, id, {"sh", "-c", "cat /proc/version; true"});
    EXPECT_EQ(output.status, 0) << output.Text();
  }

  std::string folder_;
};

TEST_F(GvisorLogFiles, AreOfSentryAndGofer) {
  const std::string id = Id();
  RunTraced(WithFlags("debug = \"true\"\nstrace = \"true\"\ndebug-log = \"" + folder_ +
                      "/%ID%/%COMMAND%.log\""),
            id);
  EXPECT_THAT(ListFolder(folder_), ElementsAre(id));
  EXPECT_THAT(ListFolder(folder_ + "/" + id), ElementsAre("boot.log", "gofer.log"));
  // D and I begin lines of that level.
  EXPECT_THAT(Log(id + "/boot.log"), AllOf(HasSubstr("gVisor"), HasSubstr("\nD"),
                                           HasSubstr("/proc/version"), HasSubstr("execve(")));
  EXPECT_THAT(Log(id + "/gofer.log"), AllOf(HasSubstr("gofer"), HasSubstr("\nD")));
}

TEST_F(GvisorLogFiles, InAFolderHaveTheNamesOfRunscs) {
  const std::string id = Id();
  RunTraced(WithFlags("debug-log = \"" + folder_ + "/\""), id);
  const std::string time = "runsc[.]log[.][0-9]{8}-[0-9]{6}[.][0-9]{6}[.]";
  const auto names = ListFolder(folder_);
  ASSERT_THAT(names,
              ElementsAre(MatchesRegex(time + "boot[.]txt"), MatchesRegex(time + "gofer[.]txt")));
  // Both are of one sandbox.
  EXPECT_EQ(names[0].substr(0, names[0].find(".boot")),
            names[1].substr(0, names[1].find(".gofer")));
  EXPECT_THAT(Log(names[0]), Not(HasSubstr("\nD")));
}

TEST_F(GvisorLogFiles, OfFurtherContainersAreTheirOwn) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  Words flags = WithFlags("debug-log = \"" + folder_ + "/%ID%.%CID%.%COMMAND%\"");
  Words root_flags = AsRoot(root);
  root_flags.insert(root_flags.end(), flags.begin(), flags.end());
  StartDetached(root, {"sleep", "1000"}, root_flags);
  Words further_flags = AsFurther(root);
  further_flags.insert(further_flags.end(), flags.begin(), flags.end());
  RunTraced(further_flags, further);
  Remove(root);
  EXPECT_THAT(ListFolder(folder_),
              UnorderedElementsAre(root + "." + root + ".boot", root + "." + root + ".gofer",
                                   root + "." + further + ".gofer"));
}

TEST_F(GvisorLogFiles, AreOfThoseCommandsThatAreToBeDebugged) {
  RunTraced(WithFlags("debug-command = \"boot\"\ndebug-log = \"" + folder_ + "/%COMMAND%\""), Id());
  EXPECT_THAT(ListFolder(folder_), ElementsAre("boot"));
}

TEST_F(GvisorLogFiles, AreWhereTheOtherShimsFileSays) {
  RunTraced(WithOptions("log_path = \"" + folder_ + "/shim.log\"\nlog_level = \"debug\"\n"), Id());
  EXPECT_THAT(Log("shim.log"), HasSubstr("\nD"));
}

TEST_F(GvisorLogFiles, SayMoreOfAPodThatAsksForIt) {
  Words flags = WithFlags("debug-log = \"" + folder_ + "/%ID%.%COMMAND%\"");
  const std::string quiet = Id("-quiet");
  RunTraced(flags, quiet);
  EXPECT_THAT(Log(quiet + ".boot"), Not(HasSubstr("execve(")));
  flags.insert(flags.end(), {"--annotation", "dev.gvisor.flag.debug=true", "--annotation",
                             "dev.gvisor.flag.strace=true", "--annotation",
                             "dev.gvisor.flag.strace-syscalls=execve"});
  const std::string loud = Id("-loud");
  RunTraced(flags, loud);
  EXPECT_THAT(Log(loud + ".boot"), AllOf(HasSubstr("\nD"), HasSubstr("execve(")));
}

TEST_F(GvisorLogFiles, OfTheUserAreInThePodsFolder) {
  // It is the kubelet's to make: where there is none, there is no log.
  const std::string folder = "io.kubernetes.cri.sandbox-log-directory=" + folder_;
  RunTraced({"--annotation", folder}, Id("-none"));
  EXPECT_FALSE(fs::exists(folder_));
  fs::create_directories(folder_);
  RunTraced({"--annotation", folder}, Id("-quiet"));
  EXPECT_THAT(ListFolder(folder_), ElementsAre("gvisor.log"));
  RunTraced({"--annotation", folder, "--annotation", "dev.gvisor.flag.debug-to-user-log=true"},
            Id("-loud"));
  EXPECT_THAT(Log("gvisor.log"), HasSubstr("**** gVisor ****"));
}

TEST_F(GvisorLogFiles, GetPanicsWhereTheyAreWantedApart) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"},
                WithFlags("panic-log = \"" + folder_ + "/%COMMAND%\"\npanic-signal = \"12\""));
  const pid_t sentry = FindTask(id).pid;
  ASSERT_GT(sentry, 0);
  EXPECT_EQ(kill(sentry, 12), 0);
  EXPECT_TRUE(WaitForText(folder_ + "/panic", "panic: ")) << Log("panic");
  Remove(id);
}

TEST_F(GvisorLogFiles, ThatCannotBeOpenedRefuseTheContainer) {
  const std::string id = Id();
  WriteText(folder_, "");
  const Output output =
      RunContainer(WithFlags("debug-log = \"" + folder_ + "/%ID%\""), id, {"true"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("open the log '" + folder_ + "/" + id +
                                    "' (runsc_config.debug-log or log_path): ENOTDIR"));
  Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
  fs::remove(folder_);
  RunTraced({}, id);
}

}  // namespace
}  // namespace gantry::e2e
