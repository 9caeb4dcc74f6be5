// SPDX-License-Identifier: Apache-2.0
//
// Guests under `ctr run`: what they are given, what they see, what they say and how they end.
#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WasmRun : public WasmTest {
 protected:
  static Words Colour() { return {"--env", "COLOUR=deep blue"}; }
};

/// Nothing of the engine's, the keeper's or containerd's comes along.
TEST_F(WasmRun, HasTheArgumentsTheEnvironmentAndTheInputOfItsContainer) {
  Program program = StartWithInput({"hello", "one", "two words"}, Colour());
  program.Write("first line\nlast line\n");
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_EQ(program.out(),
            "arg /guests/hello.wasm\narg one\narg two words\nenv PATH=/bin\n"
            "env COLOUR=deep blue\nin first line\nin last line\n");
}

TEST_F(WasmRun, EndsWithEachExitCode) {
  for (const int code : {0, 1, 42, 125, 126, 134, 200, 255}) {
    const Output output = RunGuest({"tool", "exit", std::to_string(code)});
    EXPECT_EQ(output.status, code) << output.Text();
  }
}

/// Of an i32 what wait(2) has room for.
TEST_F(WasmRun, EndsWithTheLowByteOfWhatItExitsWith) { EXPECT_EQ(RunGuest({"exit"}).status, 200); }

TEST_F(WasmRun, KeepsItsStreamsApart) {
  const Output output = RunGuest({"tool", "streams", "here"});
  EXPECT_EQ(output.out, "out here\n");
  EXPECT_EQ(output.err, "err here\n");
}

TEST_F(WasmRun, SaysAllOfMuchOutput) {
  const Output output = RunGuest({"tool", "big", "3000000"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out.size(), 3000000U);
  EXPECT_EQ(output.out.back(), '\n');
}

TEST_F(WasmRun, SeesTheRootOfItsContainerAndItsMounts) {
  const Output root = RunGuest({"tool", "list", "/"});
  EXPECT_THAT(root.out, HasSubstr("bin\n")) << root.Text();
  EXPECT_THAT(root.out, HasSubstr("guests\n"));
  EXPECT_THAT(RunGuest({"tool", "list", "/guests"}).out, HasSubstr("tool.wasm\n"));
  const Output passwd = RunGuest({"tool", "read", "/etc/passwd"});
  EXPECT_THAT(passwd.out, StartsWith("root:x:0:0")) << passwd.Text();
}

TEST_F(WasmRun, MakesAndRemovesFiles) {
  const Output output = RunGuest({"tool", "files", "/tmp"});
  EXPECT_EQ(output.status, 0) << output.Text();
}

/// By the mount, and by what the guest is told that it may do.
TEST_F(WasmRun, CannotWriteWhereItMayOnlyRead) {
  EXPECT_NE(RunGuest({"tool", "make", "/guests/new"}).status, 0);
  EXPECT_NE(RunGuest({"tool", "make", "/tmp/new"}, {"--read-only"}).status, 0);
  EXPECT_EQ(RunGuest({"tool", "make", "/tmp/new"}).status, 0);
}

TEST_F(WasmRun, IsLookedUpInItsFolderAndInItsPath) {
  const Words flags = WithGuests({"--rm", "--cwd", "/guests"});
  const Output here = RunContainer(flags, Id("-cwd"), {"tool.wasm", "exit", "5"});
  EXPECT_EQ(here.status, 5) << here.Text();
  const Words path = WithGuests({"--rm", "--env", "PATH=/bin:/guests"});
  const Output found = RunContainer(path, Id("-path"), {"tool.wasm", "exit", "6"});
  EXPECT_EQ(found.status, 6) << found.Text();
}

TEST_F(WasmRun, RunsTheFunctionThatIsNamed) {
  for (const auto& [name, code] : {std::pair("one", 41), {"two", 42}, {"high", 200}}) {
    const Output output = RunContainer(WithGuests({"--rm"}), Id(std::string("-") + name),
                                       {Guest("reactor") + "#" + name});
    EXPECT_EQ(output.status, code) << output.Text();
  }
}

TEST_F(WasmRun, RunsComponents) {
  Program program = StartWithInput({"hello_component", "one"}, Colour());
  program.Write("line\n");
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_EQ(program.out(),
            "arg /guests/hello_component.wasm\narg one\nenv PATH=/bin\n"
            "env COLOUR=deep blue\nin line\n");
}

/// Its filter lets it have no second thread, by which the engine would do that.
TEST_F(WasmRun, StreamsFilesOfComponents) {
  Program::Options options;
  options.input = true;
  Program program = Start(Id(), {Guest("tool_component"), "stream", "/tmp/streamed"}, {}, options);
  EXPECT_TRUE(program.ReadUntil("200000 bytes, the same\n")) << program.err();
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
}

/// A seed that is made before the container is would be everybody's.
TEST_F(WasmRun, HasItsOwnRandomNumbers) {
  const Output first = RunGuest({"tool", "random"});
  const Output second = RunGuest({"tool", "random"});
  EXPECT_EQ(first.out.size(), 33U) << first.Text();
  EXPECT_NE(first.out, second.out);
}

TEST_F(WasmRun, StandsBesideNativeProgramsOfOneImage) {
  const Output native = RunContainer({"--rm"}, Id(), {"sh", "-c", "echo native; exit 3"});
  EXPECT_EQ(native.status, 3) << native.Text();
  EXPECT_EQ(native.out, "native\n");
}

TEST_F(WasmRun, HasATerminal) {
  Program::Options options;
  options.terminal = true;
  Program program =
      StartCtr(node(), RunWords(WithGuests({"--rm", "-t"}), Id(), Tool({"terminals"})), options);
  EXPECT_TRUE(program.ReadUntil("111")) << program.out();
  EXPECT_EQ(program.Wait(), 0);
}

/// Also after it has read its input: Components.ReadInOneThread.
TEST_F(WasmRun, IsOneThread) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithGuests({}));
  const Task task = FindTask(id);
  ASSERT_NO_FATAL_FAILURE(ExpectConfined(task.pid));
  EXPECT_THAT(Ctr({"tasks", "ps", id}).out, HasSubstr(std::to_string(task.pid)));
  Remove(id);
}

TEST_F(WasmRun, IsPausedAndMeasured) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithGuests({}));
  EXPECT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "PAUSED"));
  EXPECT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_TRUE(WaitForState(id, "RUNNING"));
  const Output metrics = Ctr({"tasks", "metrics", id});
  EXPECT_EQ(metrics.status, 0) << metrics.Text();
  EXPECT_THAT(metrics.out, HasSubstr("memory"));
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
