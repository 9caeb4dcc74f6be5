// SPDX-License-Identifier: Apache-2.0
//
// Which files an operator's flags mean, and which handlers may have them.
#include "plugins/gvisor/launch/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/protowire.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/gvisor/backend.h"
#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/options.h"

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Pair;
using testing::UnorderedElementsAre;

std::map<std::string, std::string> FlagsOf(const std::string& json) {
  const auto options = ParseOptions(json, Options(), nullptr);
  EXPECT_TRUE(options);
  return options ? RunscFlags(*options) : std::map<std::string, std::string>();
}

std::string Complaint(const std::map<std::string, std::string>& flags) {
  const auto made = MakeFlags(flags, {});
  return made ? "" : made.error().message;
}

class LogFiles : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
  }

  os::TempDir dir_;
  const LogOwner owner_{.sandbox = "pod", .container = "one"};
};

TEST_F(LogFiles, AreNamedByTheirPattern) {
  EXPECT_EQ(LogFilePath("/l/%ID%/%CID%.%COMMAND%.%ID%%TEST%", owner_, "gofer"),
            "/l/pod/one.gofer.pod");
  EXPECT_EQ(LogFilePath("/l/plain", owner_, "boot"), "/l/plain");
}

TEST_F(LogFiles, OfAFolderAreNamedByCommandAndTime) {
  // In a zone of its own offset from UTC it would be another hour, of the same form.
  EXPECT_THAT(LogFilePath("/l/", owner_, "boot"),
              MatchesRegex("/l/runsc[.]log[.][0-9]{8}-[0-9]{6}[.][0-9]{6}[.]boot[.]txt"));
}

TEST_F(LogFiles, AreAppendedToInFoldersThatAreMade) {
  const std::string path = dir_.path() + "/a/b/pod.log";
  for (const char* text : {"one ", "two"}) {
    const auto file = OpenLogFile("debug-log", dir_.path() + "/a/b/%ID%.log", owner_, "boot");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(fcntl(file->get(), F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
    EXPECT_GT(write(file->get(), text, strlen(text)), 0);
  }
  EXPECT_EQ(ReadFile(path, 100).value_or(""), "one two");
}

TEST_F(LogFiles, ThatNobodyWantsAreNone) {
  const auto file = OpenLogFile("debug-log", "", owner_, "boot");
  ASSERT_TRUE(file);
  EXPECT_FALSE(*file);
}

TEST_F(LogFiles, ThatCannotBeOpenedAreNamed) {
  const std::string plain = dir_.path() + "/plain";
  ASSERT_TRUE(WriteFile(plain, "", 0600));
  const auto file = OpenLogFile("runsc_config.debug-log", plain + "/%ID%", owner_, "boot");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message,
            "open the log '" + plain + "/pod' (runsc_config.debug-log): ENOTDIR");
}

TEST_F(LogFiles, AreNoFifosThatNobodyReads) {
  const std::string fifo = dir_.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto file = OpenLogFile("runsc_config.debug-log", fifo, owner_, "boot");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("ENXIO"));
}

TEST(LogFlagsTest, TellWhichCommandsAreDebugged) {
  LogFlags logs;
  EXPECT_TRUE(logs.Debugs("boot"));
  logs.commands = "create,boot";
  EXPECT_TRUE(logs.Debugs("boot"));
  EXPECT_FALSE(logs.Debugs("gofer"));
  logs.commands = "!boot,create";
  EXPECT_FALSE(logs.Debugs("boot"));
  EXPECT_TRUE(logs.Debugs("gofer"));
}

TEST(LogFlagsTest, MustBeAbsolute) {
  for (const char* flag : {"debug-log", "panic-log", "coverage-report"}) {
    EXPECT_EQ(Complaint({{flag, "here/"}}), std::string("check option 'runsc_config.") + flag +
                                                "': 'here/': must be an absolute path");
    EXPECT_EQ(Complaint({{flag, "/here/"}}), "");
  }
}

TEST(LogFlagsTest, AreNotHandedOnAsTheyAre) {
  const auto flags = MakeFlags({{"debug", "true"},
                                {"debug-command", "boot"},
                                {"debug-log", "/l/"},
                                {"panic-log", "/p"},
                                {"coverage-report", "/c"}},
                               {});
  ASSERT_TRUE(flags);
  EXPECT_THAT(flags->Arguments(),
              UnorderedElementsAre("--debug=true", "--debug-command=boot", "--network=sandbox"));
  EXPECT_EQ(flags->logs,
            (LogFlags{.debug = "/l/", .commands = "boot", .panic = "/p", .coverage = "/c"}));
}

TEST(LogFlagsTest, OfThePodAreWhatTheOperatorLetsItSet) {
  const std::string all = "dev.gvisor.flag.";
  EXPECT_TRUE(MakeFlags({}, {{all + "debug", "true"}, {all + "debug-command", "boot"}}));
  EXPECT_FALSE(MakeFlags({}, {{all + "debug-log", "/etc/passwd"}}));
  const auto allowed =
      MakeFlags({{"allow-flag-override", "true"}}, {{all + "debug-log", "/l/%ID%"}});
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->logs.debug, "/l/%ID%");
}

TEST(LogFlagsTest, KnowThePodsFolderOfLogs) {
  const auto flags = MakeFlags({}, {{kLogFolderAnnotation, "/var/log/pods/one"}});
  ASSERT_TRUE(flags);
  EXPECT_EQ(flags->logs.user, "/var/log/pods/one/gvisor.log");
  EXPECT_EQ(UserLogIn(""), "");
  EXPECT_EQ(UserLogIn("relative"), "");
  ProtoWriter pod;
  pod.Text(2, "host");
  pod.Text(3, "/var/log/pods/two");
  EXPECT_EQ(LogFolderOf(pod.str()), "/var/log/pods/two");
  EXPECT_EQ(LogFolderOf(""), "");
}

TEST(LogOptions, OfTheOtherShimAreForSentriesWhereThoseHaveNone) {
  EXPECT_THAT(FlagsOf(R"({"log_path":"/l/%ID%","log_level":"debug"})"),
              UnorderedElementsAre(Pair("debug-log", "/l/%ID%"), Pair("debug", "true")));
  EXPECT_THAT(FlagsOf(R"({"log_path":"/l/%ID%","log_level":"info"})"),
              UnorderedElementsAre(Pair("debug-log", "/l/%ID%")));
  // That shim's own then.
  EXPECT_THAT(FlagsOf(R"({"log_path":"/shim","log_level":"debug",
                          "runsc_config":{"debug-log":"/l/"}})"),
              UnorderedElementsAre(Pair("debug-log", "/l/")));
  EXPECT_THAT(FlagsOf(R"({"log_level":"debug"})"), testing::IsEmpty());
}

TEST(LogOptions, ThatNameThePodLeaveNoneToBeBootedBeforehand) {
  const auto complaint = [](const std::string& options) {
    GvisorBackend backend{Options()};
    const Status checked = backend.CheckOptions(options);
    return checked ? "" : checked.error().message;
  };
  for (const char* named :
       {R"("log_path":"/l/%ID%/shim.log")", R"("runsc_config":{"debug-log":"/l/%CID%"})",
        R"("runsc_config":{"panic-log":"/l/%ID%"})",
        R"("runsc_config":{"debug-to-user-log":"1"})"}) {
    EXPECT_THAT(complaint(std::string(R"({"warm":1,)") + named + "}"),
                HasSubstr("check option 'warm': the logs of sandboxes are named by their pods"));
    EXPECT_EQ(complaint(std::string(R"({"warm":0,)") + named + "}"), "");
  }
  EXPECT_EQ(complaint(R"({"warm":1,"runsc_config":{"debug":"true","debug-log":"/l/"}})"), "");
}

}  // namespace
}  // namespace gantry::gvisor
