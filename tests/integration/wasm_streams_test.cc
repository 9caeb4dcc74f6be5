// SPDX-License-Identifier: Apache-2.0
//
// Streams of guests and of execs without a terminal: their ends, and what is said before the guest
// begins, in it and when it ends.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmStreams : public WasmTest {
 protected:
  static constexpr int kSteps = 10;

  /// A guest that copies its input to its output, until its first line has come back: what ctr is
  /// given before the process is there, it forgets to close.
  static Program StartCat(const Words& words) {
    Program::Options options;
    options.input = true;
    Program program = StartCtr(node(), words, options);
    program.Write("first\n");
    EXPECT_TRUE(program.ReadUntil("first\n")) << program.err();
    return program;
  }

  /// The input's end comes right after so many bytes.
  static void ExpectCopiedToTheEnd(Program program, size_t bytes) {
    std::string text(bytes, 'x');
    for (size_t i = 99; i < bytes; i += 100) {
      text[i] = '\n';
    }
    program.Write(text);
    program.CloseInput();
    EXPECT_EQ(program.Wait(kLong), 0) << program.err();
    EXPECT_TRUE(program.out() == "first\n" + text) << program.out().size();
  }

  std::string Steps() const { return settings().root + "/steps"; }

  /// For `ctr run`: the guests, and the folder of steps.
  Words WithSteps() {
    std::filesystem::create_directories(Steps());
    return WithGuests({"--mount", "type=bind,src=" + Steps() + ",dst=/steps,options=rbind:rw"});
  }

  void TearDown() override {
    if (!IsSkipped()) {
      std::filesystem::remove_all(Steps());
    }
    WasmTest::TearDown();
  }
};

constexpr size_t kInputSizes[] = {0, size_t{1} << 20, size_t{10} << 20};

TEST_F(WasmStreams, OfAContainerEndWithItsInput) {
  for (const size_t bytes : kInputSizes) {
    SCOPED_TRACE(bytes);
    ExpectCopiedToTheEnd(
        StartCat(RunWords(WithGuests({"--rm"}), Id("-" + std::to_string(bytes)), Tool({"cat"}))),
        bytes);
  }
}

TEST_F(WasmStreams, OfAnExecEndWithItsInput) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithGuests({}));
  for (const size_t bytes : kInputSizes) {
    SCOPED_TRACE(bytes);
    ExpectCopiedToTheEnd(StartCat(ExecWords({}, id, Tool({"cat"}))), bytes);
  }
  Remove(id);
}

/// ctr closes the input of such an exec as soon as it has started; the output goes on.
TEST_F(WasmStreams, OfAnExecWithoutInputAreWhole) {
  const std::string id = Id();
  StartDetached(id, Tool({"sleep", "1000000"}), WithSteps());
  Program exec = StartCtr(
      node(), ExecWords({}, id, {WasmTest::Guest("steps"), "/steps", std::to_string(kSteps), "7"}),
      {});
  ASSERT_TRUE(exec.ReadUntil("ready\n")) << exec.err();
  for (int step = 1; step <= kSteps; ++step) {
    WriteText(Steps() + "/" + std::to_string(step), "");
    EXPECT_TRUE(exec.ReadUntil("step " + std::to_string(step) + "\n")) << exec.err();
  }
  EXPECT_EQ(exec.Wait(), 7) << exec.err();
  Remove(id);
}

/// In the container's own log, which has its name.
TEST_F(WasmStreams, HaveWhatIsSaidBeforeTheGuestInItAndAtItsTrap) {
  const std::string id = Id();
  const std::string log = settings().root + "/" + id + ".log";
  StartDetached(id, {WasmTest::Guest("says")}, WithGuests({"--log-uri", "file://" + log}));
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  EXPECT_TRUE(WaitForText(log, "backtrace")) << ReadText(log);
  const std::string said = ReadText(log);
  EXPECT_THAT(said, HasSubstr("before _start\n"));
  EXPECT_THAT(said, HasSubstr("in _start\n"));
  EXPECT_THAT(said, HasSubstr("unreachable"));
  Remove(id);
  std::filesystem::remove(log);
}

/// What the engine has to say when it cannot bring a guest up.
TEST_F(WasmStreams, HaveTheEnginesOwnWords) {
  const Output output = RunGuest({"wide"}, {"--annotation", "io.gantry.wasm/memory=1Mi"});
  EXPECT_EQ(output.status, 126) << output.Text();
  EXPECT_THAT(output.err, HasSubstr("gantry-wasm: "));
  EXPECT_THAT(output.err, HasSubstr("memory"));
}

}  // namespace
}  // namespace gantry::e2e
