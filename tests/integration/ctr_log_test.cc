// SPDX-License-Identifier: Apache-2.0
//
// Output that goes to a file or to a logger instead of a client.
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

using ::testing::UnorderedElementsAre;

class CtrLog : public E2eTest {
 protected:
  std::string LogPath() { return settings().root + "/" + Id() + ".log"; }

  static std::string Logger() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "e2e_logger";
  }

  static std::vector<std::string> Lines(const std::string& path) {
    std::vector<std::string> lines;
    std::istringstream text(ReadText(path));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  // Runs a script detached with that log and waits for its end.
  void RunLogged(const std::string& uri, const std::string& script) {
    const std::string id = Id();
    StartDetached(id, {"sh", "-c", script}, {"--log-uri", uri});
    ASSERT_TRUE(WaitForState(id, "STOPPED"));
    Remove(id);
  }
};

TEST_F(CtrLog, GoesToAFile) {
  const std::string path = LogPath();
  RunLogged("file://" + path, "echo out; echo err >&2");
  // The two streams are two pipes; nothing orders what comes through them.
  EXPECT_THAT(Lines(path), UnorderedElementsAre("out", "err"));
}

TEST_F(CtrLog, MakesTheFolderOfTheFile) {
  const std::string path = settings().root + "/" + Id() + "-logs/deep/log";
  RunLogged("file://" + path, "echo out");
  EXPECT_EQ(ReadText(path), "out\n");
}

TEST_F(CtrLog, IsAppendedToTheFile) {
  const std::string path = LogPath();
  WriteText(path, "before\n");
  RunLogged("file://" + path, "echo after");
  EXPECT_EQ(ReadText(path), "before\nafter\n");
}

TEST_F(CtrLog, KeepsTheFileOutOfTheContainersReach) {
  const std::string path = LogPath();
  WriteText(path, "before\n");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  RunLogged("file://" + path,
            "echo one; chmod 4755 /proc/self/fd/1; truncate -s 0 /proc/self/fd/1; "
            "echo two >/proc/self/fd/1; echo three");
  const std::string log = ReadText(path);
  EXPECT_TRUE(log.starts_with("before\none\n")) << log;
  // A sentry does not let it open the pipe again.
  EXPECT_TRUE(log.ends_with("three\n")) << log;
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644U);
}

TEST_F(CtrLog, GoesToALogger) {
  const std::string path = LogPath();
  RunLogged("binary://" + Logger() + "?file=" + path, "echo out; echo err >&2");
  ASSERT_TRUE(WaitForText(path, "end\n")) << ReadText(path);
  const std::vector<std::string> lines = Lines(path);
  const std::string begin = "begin " + settings().ns + " " + Id();
  EXPECT_THAT(lines, UnorderedElementsAre(begin, "out", "stderr: err", "end"));
  EXPECT_EQ(lines.front(), begin);
  EXPECT_EQ(lines.back(), "end");
}

TEST_F(CtrLog, GivesTheLoggerAllOfMuchOutput) {
  const std::string path = LogPath();
  RunLogged("binary://" + Logger() + "?file=" + path, "seq 1 1000000");
  ASSERT_TRUE(WaitForText(path, "end\n"));
  const Output expected = RunProgram({"seq", "1", "1000000"});
  EXPECT_TRUE(ReadText(path) ==
              "begin " + settings().ns + " " + Id() + "\n" + expected.out + "end\n");
}

TEST_F(CtrLog, OfAnExecGoesToALogger) {
  const std::string path = LogPath();
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output exec =
      node().Ctr({"tasks", "exec", "--exec-id", "one", "--log-uri",
                  "binary://" + Logger() + "?file=" + path, id, "echo", "from-exec"});
  EXPECT_EQ(exec.status, 0) << exec.Text();
  ASSERT_TRUE(WaitForText(path, "end\n")) << ReadText(path);
  EXPECT_NE(ReadText(path).find("from-exec\n"), std::string::npos) << ReadText(path);
  Remove(id);
}

TEST_F(CtrLog, WithAMissingLoggerIsAnError) {
  const std::string id = Id();
  const Output output = RunContainer({"-d", "--log-uri", "binary:///no/such/logger"}, id, {"true"});
  EXPECT_NE(output.status, 0);
  EXPECT_NE(output.err.find("/no/such/logger"), std::string::npos) << output.Text();
  Ctr({"containers", "rm", id});
}

TEST_F(CtrLog, IsThrownAwayOnRequest) {
  const Output output = RunContainer({"--rm", "--null-io"}, Id(), {"sh", "-c", "echo x; exit 6"});
  EXPECT_EQ(output.status, 6) << output.Text();
  EXPECT_EQ(output.out, "");
}

}  // namespace
}  // namespace gantry::e2e
