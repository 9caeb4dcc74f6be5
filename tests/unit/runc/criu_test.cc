// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/criu.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runc/container_fixture.h"

namespace gantry::runc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

constexpr const char* kName = "file\\[[0-9a-f]+:[0-9a-f]+\\]";

class Criu : public testing::Test {
 protected:
  TempDir dir_;
};

/// A shell with this redirected.
std::shared_ptr<FakeHostProcess> RunWith(const std::string& streams) {
  auto shell = RunShell("exec sleep 1000 " + streams);
  // Once it is the program, its streams are where they shall be.
  while (!Slurp("/proc/" + std::to_string(shell->pid().value) + "/comm").starts_with("sleep")) {
    sched_yield();
  }
  return shell;
}

TEST_F(Criu, NamesTheFifosOfTheFileSystemOnly) {
  ASSERT_EQ(mkfifo((dir_ / "out").c_str(), 0600), 0);
  const auto process = RunWith("</dev/null 1<>" + dir_ / "out" + " 2>" + dir_ / "err");
  const StreamNames names = StreamNamesOf(process->pid());
  EXPECT_EQ(names[0], "");
  EXPECT_THAT(names[1], MatchesRegex(kName));
  EXPECT_EQ(names[2], "");
  struct stat info = {};
  ASSERT_EQ(stat((dir_ / "out").c_str(), &info), 0);
  char inode[32];
  snprintf(inode, sizeof inode, ":%lx]", info.st_ino);
  EXPECT_THAT(names[1], HasSubstr(inode));
}

TEST_F(Criu, HasNoNameForAPipe) {
  const TestPipe pipe;
  const auto process =
      RunWith(">/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(pipe.write_end.get()));
  EXPECT_EQ(StreamNamesOf(process->pid()), StreamNames());
}

TEST_F(Criu, HasNoNamesForAProcessThatHasGone) {
  EXPECT_EQ(StreamNamesOf({4194999}), StreamNames());
}

TEST_F(Criu, KeepsTheNamesInTheImage) {
  const StreamNames names{"", "file[1c:3a]", "file[1c:3b]"};
  ASSERT_TRUE(SaveStreams(dir_.path(), names));
  const auto read = ReadStreams(dir_.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, names);
}

TEST_F(Criu, FindsNoNamesInAnImageOfAnotherShim) {
  ASSERT_TRUE(SaveStreams(dir_.path(), {}));
  EXPECT_FALSE(IsThere(dir_ / "gantry-streams"));
  const auto read = ReadStreams(dir_.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, StreamNames());
}

TEST_F(Criu, TakesNothingElseFromAnImage) {
  for (const std::string text :
       {"", "\n\n", "file[1c:3a]", "/etc/passwd\n\n\n", "file[1c:3a\n\n\n", "file[:3a]\n\n\n",
        "file[1c:]\n\n\n", "file[1c:3a]\raction-script /x]\n\n\n", "file[1c 3a]\n\n\n"}) {
    Write(dir_ / "gantry-streams", text);
    const auto read = ReadStreams(dir_.path());
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr("gantry-streams': not of this backend"));
  }
  Write(dir_ / "gantry-streams", std::string(10'000, '\n'));
  EXPECT_FALSE(ReadStreams(dir_.path()));
}

TEST_F(Criu, IsToldOfThem) {
  const std::string path = dir_ / "criu.conf";
  const StreamNames names{"file[1c:39]", "", "file[1c:3b]"};
  auto env = ConfigureCriu(CriuVerb::kDump, path, names);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_THAT(*env, ElementsAre("CRIU_CONFIG_FILE=" + path));
  EXPECT_EQ(Slurp(path), "external file[1c:39]\nexternal file[1c:3b]\n");
  env = ConfigureCriu(CriuVerb::kRestore, path, names);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(Slurp(path), "inherit-fd fd[0]:file[1c:39]\ninherit-fd fd[2]:file[1c:3b]\n");
}

TEST_F(Criu, NeedsNoConfigurationWithoutThem) {
  const auto env = ConfigureCriu(CriuVerb::kDump, "/none/criu.conf", {});
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_THAT(*env, IsEmpty());
}

class RuncRestoreTest : public RuncContainerTest {
 protected:
  RuncRestoreTest() {
    Write(dir_ / "criu", "", 0755);
    request_.options_json.insert(request_.options_json.size() - 1,
                                 ", \"CriuPath\": \"" + dir_ / "criu" + "\"");
    request_.checkpoint = dir_.path();
    Script("cp $CRIU_CONFIG_FILE " + dir_ / "told" + " && made");
  }
};

TEST_F(RuncRestoreTest, TellsCriuOfTheStreamsOfTheImage) {
  ASSERT_TRUE(SaveStreams(dir_.path(), {"", "file[1c:3a]", ""}));
  auto made = Create();
  ASSERT_TRUE(made) << made.error().message;
  const TestPipe out;
  container_.process.stdio.out.fd = UniqueFd(dup(out.write_end.get()));
  ASSERT_TRUE((*made)->Start());
  EXPECT_EQ(Slurp(dir_ / "told"), "inherit-fd fd[1]:file[1c:3a]\n");
}

TEST_F(RuncRestoreTest, RefusesToLeaveAStreamOut) {
  ASSERT_TRUE(SaveStreams(dir_.path(), {"file[1c:3a]", "", ""}));
  auto made = Create();
  ASSERT_TRUE(made) << made.error().message;
  const Status started = (*made)->Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(started.error().message,
              HasSubstr("restore container 'c1': it was saved with a stdin"));
  EXPECT_THAT(VerbsOf(context_), IsEmpty());
}

}  // namespace
}  // namespace gantry::runc
