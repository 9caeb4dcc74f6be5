// SPDX-License-Identifier: Apache-2.0
//
// The flight recorder: what it has of a container's life, also after kill -9 of the engine that
// wrote it, after the container, and where nothing answers; and the archive for a bug report.
#include <signal.h>

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>

#include "core/os/fs.h"
#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Trace : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && settings().stock()) {
      GTEST_SKIP() << "the stock runtime has no recorder";
    }
  }

  static Output Gantryctl(const Words& words) {
    Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  static std::string Traced(const std::string& id) {
    const Output output = Gantryctl({"trace", id});
    EXPECT_EQ(output.status, 0) << output.Text();
    return output.out;
  }

  static void KillEngine() {
    HostProcess engine;
    ASSERT_TRUE(Eventually([&] {
      engine = node().Engine();
      return engine.pid != 0;
    }));
    kill(engine.pid, SIGKILL);
    ASSERT_TRUE(WaitGone(engine.pid));
  }

  const os::TempDir scratch_ = std::move(*os::TempDir::Create());
};

TEST_F(Trace, HasALifeFromItsCreateToItsDelete) {
  const std::string id = Id();
  const Output output = RunContainer({"--rm"}, id, {"sh", "-c", "exit 3"});
  ASSERT_EQ(output.status, 3) << output.Text();

  std::string text;
  EXPECT_TRUE(Eventually([&] {
    text = Traced(id);
    return text.contains("/tasks/delete") && !text.contains("under way");
  })) << text;

  for (const std::string step :
       {"keeper +announced +ok", "call +Create +ok", "backend +create +ok",
        "event +/tasks/create +ok", "call +Start +ok", "backend +start +ok",
        "event +/tasks/start +ok", "exit +exit +ok: status 3", "event +/tasks/exit +ok",
        "call +Wait +ok", "call +Delete +ok", "event +/tasks/delete +ok"}) {
    EXPECT_THAT(text, ContainsRegex(step));
  }
}

TEST_F(Trace, OutlivesTheEngineThatWasKilled) {
  const std::string id = Id();
  Program program = StartCtr(node(), RunWords({"--rm"}, id, {"sh", "-c", "echo on; cat; exit 4"}),
                             {.input = true, .env = {}, .log_path = {}});
  ASSERT_TRUE(program.ReadUntil("on"));
  // Its program may say something before its start is answered.
  const testing::Matcher<std::string> started =
      AllOf(ContainsRegex("call +Create +ok"), ContainsRegex("call +Start +ok"));
  ASSERT_TRUE(Eventually([&] { return testing::Value(Traced(id), started); }));

  KillEngine();

  EXPECT_THAT(Traced(id), started);
  ASSERT_TRUE(Eventually([&] { return Traced(id).contains("recover (again)"); }));
  program.CloseInput();
  EXPECT_EQ(program.Finish().status, 4);
  std::string text;
  EXPECT_TRUE(Eventually([&] {
    text = Traced(id);
    return text.contains("/tasks/delete");
  }));
  EXPECT_THAT(text, AllOf(ContainsRegex("call +Wait +its engine ended"),
                          ContainsRegex("engine +come up +ok: version "),
                          ContainsRegex("call +Wait \\(again\\) +ok"),
                          ContainsRegex("exit +exit +ok: status 4")));
}

TEST_F(Trace, IsReadWhereNobodyAnswersAndIsInTheArchive) {
  const std::string id = Id();
  ASSERT_EQ(RunContainer({"--rm"}, id, {"true"}).status, 0);
  // Elsewhere nobody listens; the ring is what there is.
  const std::filesystem::path folder = scratch_.path();
  std::filesystem::copy_file(settings().run_dir + "/trace.ring", folder / "trace.ring");
  const Output trace = RunProgram({"env", "GANTRY_RUN_DIR=" + folder.string(),
                                   settings().gantry_bin + "/gantryctl", "trace", id});
  EXPECT_EQ(trace.status, 0) << trace.Text();
  EXPECT_THAT(trace.out, ContainsRegex("call +Create +ok"));

  const std::string archive = (folder / "dump.tar.gz").string();
  const Output dead = RunProgram({"env", "GANTRY_RUN_DIR=" + folder.string(),
                                  settings().gantry_bin + "/gantryctl", "debug", "dump", archive});
  ASSERT_EQ(dead.status, 0) << dead.Text();
  const Output packed = RunProgram({"tar", "-xzOf", archive, "gantry-debug/trace.txt"});
  EXPECT_THAT(packed.out, HasSubstr(id));
}

TEST_F(Trace, ArchiveHasWhatEngineAndKeeperSay) {
  const std::string id = Id();
  Program program =
      StartCtr(node(), RunWords({"--rm", "--env", "TOKEN=hush"}, id, {"sh", "-c", "echo on; cat"}),
               {.input = true, .env = {}, .log_path = {}});
  ASSERT_TRUE(program.ReadUntil("on"));
  const std::string archive = scratch_.path() + "/dump.tar.gz";
  const Output output = Gantryctl({"debug", "dump", archive});
  ASSERT_EQ(output.status, 0) << output.Text();

  const Output all = RunProgram({"tar", "-xzOf", archive});

  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("\"id\": \"" + id + "\""), HasSubstr("engine_starts"),
                             HasSubstr("gantry-keeper"), Not(HasSubstr("hush"))));
  program.CloseInput();
  EXPECT_EQ(program.Finish().status, 0);
}

}  // namespace
}  // namespace gantry::e2e
