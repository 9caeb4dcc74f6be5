// SPDX-License-Identifier: Apache-2.0
//
// What cannot be run: Create fails and says what it saw, and the same id serves afterwards.
#include <sys/stat.h>

#include <array>
#include <string_view>

#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmRefused : public WasmTest {
 protected:
  /// For `ctr run`: a folder with `content` in /odd/FILE.
  Words WithFile(const std::string& file, const std::string& content) {
    const std::string folder = settings().root + "/odd";
    RunProgram({"mkdir", "-p", folder});
    WriteText(folder + "/" + file, content);
    return WithOdd();
  }

  Words WithOdd() {
    return WithGuests(
        {"--rm", "--mount", "type=bind,src=" + settings().root + "/odd,dst=/odd,options=rbind:ro"});
  }

  /// Fails with all of `parts`, and then the id runs a guest.
  void ExpectRefused(const Words& flags, const Words& command,
                     const std::vector<std::string>& parts) {
    const std::string id = Id();
    const Output refused = RunContainer(flags, id, command);
    EXPECT_EQ(refused.status, 1) << refused.Text();
    for (const std::string& part : parts) {
      EXPECT_THAT(refused.err, HasSubstr(part));
    }
    Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
    const Output again = RunContainer(WithGuests({"--rm"}), id, Tool({"exit", "9"}));
    EXPECT_EQ(again.status, 9) << again.Text();
  }
};

TEST_F(WasmRefused, AFileThatIsNotThere) {
  ExpectRefused(WithGuests({"--rm"}), {"/guests/none.wasm"}, {"/guests/none.wasm"});
}

TEST_F(WasmRefused, AFunctionThatIsNotThere) {
  ExpectRefused(WithGuests({"--rm"}), {Guest("reactor") + "#nobody"}, {"nobody", "one"});
}

TEST_F(WasmRefused, AnImportThatNobodyHas) {
  ExpectRefused(WithGuests({"--rm"}), {Guest("missing")}, {"env", "foo"});
}

TEST_F(WasmRefused, WhatIsNeitherAModuleNorAProgram) {
  using std::string_literals::operator""s;
  const std::array<std::pair<std::string, std::string>, 4> rows{{
      {"empty.wasm", ""},
      {"zeros.wasm", std::string(1 << 20, '\0')},
      {"cut.wasm", "\0asm\1\0\0\0\1"s},
      {"text.wasm", "(module)"},
  }};
  for (const auto& [file, content] : rows) {
    SCOPED_TRACE(file);
    ExpectRefused(WithFile(file, content), {"/odd/" + file}, {"/odd/" + file});
  }
}

TEST_F(WasmRefused, ADirectoryAndAFifo) {
  const std::string folder = settings().root + "/odd";
  RunProgram({"mkdir", "-p", folder + "/folder.wasm"});
  mkfifo((folder + "/fifo.wasm").c_str(), 0644);
  for (const char* name : {"/odd/folder.wasm", "/odd/fifo.wasm"}) {
    SCOPED_TRACE(name);
    Words flags = WithOdd();
    flags.insert(flags.end(), {"--annotation", "run.oci.handler=wasm"});
    ExpectRefused(flags, {name}, {name});
  }
}

TEST_F(WasmRefused, AnAnnotationThatSaysNothing) {
  ExpectRefused(WithGuests({"--rm", "--annotation", "io.gantry.wasm/memory=plenty"}),
                Tool({"exit"}), {"io.gantry.wasm/memory", "plenty"});
}

}  // namespace
}  // namespace gantry::e2e
