// SPDX-License-Identifier: Apache-2.0
//
// The second engine, `engine: wasmedge`: a sample of what the other WasmX tests ask of the first.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WasmEdge : public WasmTest {
 protected:
  void SetUp() override {
    WasmTest::SetUp();
    if (!IsSkipped() && !std::filesystem::exists(settings().gantry_bin + "/gantry-wasmedge")) {
      GTEST_SKIP() << "this build has no WasmEdge: libwasmedge-dev is not installed";
    }
  }

  /// For `ctr run`: `flags`, and the engine.
  static Words WithEngine(Words flags = {}) {
    const std::string path = settings().root + "/wasmedge.toml";
    WriteText(path, "engine = \"wasmedge\"\n");
    flags.insert(flags.end(), {"--runtime-config-path", path});
    return flags;
  }

  Output Run(const Words& words, const Words& flags = {}) {
    return RunGuest(words, WithEngine(flags));
  }

  void ExpectEnd(const std::string& what, const std::string& line, const std::string& signal,
                 int code) {
    const std::string id = Id("-" + what + signal);
    Program program = StartGuest(id, {"tool", what, "1000000"}, line, WithEngine());
    const Output killed = Ctr({"tasks", "kill", "-s", signal, id});
    EXPECT_EQ(killed.status, 0) << killed.Text();
    EXPECT_EQ(program.Wait(), code) << program.err();
  }
};

TEST_F(WasmEdge, HasTheArgumentsTheEnvironmentAndTheInputOfItsContainer) {
  Program program =
      StartWithInput({"hello", "one", "two words"}, WithEngine({"--env", "COLOUR=deep blue"}));
  program.Write("first line\nlast line\n");
  program.CloseInput();
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_EQ(program.out(),
            "arg /guests/hello.wasm\narg one\narg two words\nenv PATH=/bin\n"
            "env COLOUR=deep blue\nin first line\nin last line\n");
}

TEST_F(WasmEdge, EndsWithItsExitCodeOrATrap) {
  for (const int code : {0, 42, 200}) {
    const Output output = Run({"tool", "exit", std::to_string(code)});
    EXPECT_EQ(output.status, code) << output.Text();
  }
  const Output trap = Run({"tool", "trap"});
  EXPECT_EQ(trap.status, 134) << trap.Text();
  EXPECT_THAT(trap.err, HasSubstr("unreachable"));
}

TEST_F(WasmEdge, IsEndedByASignal) {
  ExpectEnd("spin", "spins\n", "TERM", 143);
  ExpectEnd("sleep", "sleeps\n", "TERM", 143);
  ExpectEnd("spin", "spins\n", "KILL", 137);
}

/// Its interpreter's stack has no limit but the container's memory.
TEST_F(WasmEdge, IsEndedByARecursionWithoutEnd) {
  EXPECT_EQ(Run({"recurse"}, {"--memory-limit", "67108864"}).status, 137);
}

TEST_F(WasmEdge, SeesItsRootAndWritesWhereItMay) {
  const Output passwd = Run({"tool", "read", "/etc/passwd"});
  EXPECT_THAT(passwd.out, StartsWith("root:x:0:0")) << passwd.Text();
  EXPECT_THAT(Run({"tool", "list", "/guests"}).out, HasSubstr("tool.wasm\n"));
  const Output files = Run({"tool", "files", "/tmp"});
  EXPECT_EQ(files.status, 0) << files.Text();
  EXPECT_NE(Run({"tool", "make", "/guests/new"}).status, 0);
  EXPECT_NE(Run({"tool", "make", "/tmp/new"}, {"--read-only"}).status, 0);
}

TEST_F(WasmEdge, HasSocketsWhereItMay) {
  constexpr int kNotPermitted = 63;  // As WASI numbers it.
  const Output sockets = Run({"edge_sockets"});
  EXPECT_EQ(sockets.status, 0) << sockets.Text();
  const Output none = Run({"edge_sockets"}, {"--annotation", "io.gantry.wasm/network=none"});
  EXPECT_EQ(none.status, kNotPermitted) << none.Text();
}

TEST_F(WasmEdge, IsConfinedAndHasExecs) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithEngine(WithGuests({})));
  const pid_t pid = FindTask(id).pid;
  ASSERT_NO_FATAL_FAILURE(ExpectConfined(pid));
  EXPECT_EQ(ReadText("/proc/" + std::to_string(pid) + "/comm"), "gantry-wasmedge\n");
  const Output exec = Exec(id, Tool({"cat"}), {}, "some input\n");
  EXPECT_EQ(exec.status, 0) << exec.Text();
  EXPECT_EQ(exec.out, "some input\n");
  EXPECT_EQ(Exec(id, Tool({"exit", "9"})).status, 9);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 3"}).status, 3);
  Remove(id);
}

TEST_F(WasmEdge, IsNotMadeOfWhatItDoesNotRun) {
  for (const auto& [guest, word] :
       {std::pair("hello_component", "a component"), {"missing", "'foo'"}}) {
    const std::string id = Id(std::string("-") + guest);
    const Output refused = RunContainer(WithEngine(WithGuests({"--rm"})), id, {Guest(guest)});
    EXPECT_EQ(refused.status, 1) << refused.Text();
    EXPECT_THAT(refused.err, HasSubstr(word));
    Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
  }
}

}  // namespace
}  // namespace gantry::e2e
