// SPDX-License-Identifier: Apache-2.0
//
// What cannot be run: Create fails and says what it saw, and the same id serves afterwards.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>

#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmRefused : public WasmTest {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      std::filesystem::remove_all(settings().root + "/odd");
    }
    WasmTest::TearDown();
  }

  /// For `ctr run`: a folder with `content` in /odd/FILE.
  Words WithFile(const std::string& file, const std::string& content) {
    const std::string folder = settings().root + "/odd";
    RunProgram({"mkdir", "-p", folder});
    WriteText(folder + "/" + file, content);
    return WithOdd();
  }

  /// In a container that says that it is of WebAssembly.
  static Words Claimed(Words flags) {
    flags.insert(flags.end(), {"--annotation", "run.oci.handler=wasm"});
    return flags;
  }

  static std::string OddPath(const std::string& name) {
    RunProgram({"mkdir", "-p", settings().root + "/odd"});
    return settings().root + "/odd/" + name;
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

/// A program for the kernel is one, unless the container says otherwise.
TEST_F(WasmRefused, WhatIsCompiled) {
  const std::string elf = "\177ELF\2\1\1" + std::string(57, '\0');
  ExpectRefused(Claimed(WithFile("elf.wasm", elf)), {"/odd/elf.wasm"},
                {"/odd/elf.wasm", "ELF program"});
  std::string artifact = elf;
  artifact[7] = '\xc8';  // Its ABI is Wasmtime's.
  for (const Words& flags : {WithFile("module.cwasm", artifact), Claimed(WithOdd())}) {
    ExpectRefused(flags, {"/odd/module.cwasm"}, {"/odd/module.cwasm", "Wasmtime has compiled"});
  }
}

TEST_F(WasmRefused, AModuleThatIsCutOrBroken) {
  using std::string_literals::operator""s;
  const std::string whole = ReadText(settings().guests + "/tool.wasm");
  ExpectRefused(WithFile("half.wasm", whole.substr(0, whole.size() / 2)), {"/odd/half.wasm"},
                {"/odd/half.wasm", "section"});
  ExpectRefused(WithFile("number.wasm", "\0asm\1\0\0\0\1\6\x80\x80\x80\x80\x80\0"s),
                {"/odd/number.wasm"}, {"section 'type' at offset 8", "more than 5 bytes"});
}

/// Of which no more than the first bytes are read.
TEST_F(WasmRefused, AFileOfAGigabyte) {
  using std::string_literals::operator""s;
  for (const auto& [content, why] :
       {std::pair(""s, "it is zeros"), {"\0asm\1\0\0\0"s, "max_module_bytes"}}) {
    const Words flags = WithFile("huge.wasm", content);
    ASSERT_EQ(truncate(OddPath("huge.wasm").c_str(), off_t{1} << 30), 0);
    ExpectRefused(flags, {"/odd/huge.wasm"}, {"/odd/huge.wasm", why});
  }
}

TEST_F(WasmRefused, WhatIsNoFile) {
  RunProgram({"mkdir", "-p", OddPath("folder.wasm")});
  ASSERT_EQ(mkfifo(OddPath("fifo.wasm").c_str(), 0644), 0);
  // Of zeros, without an end.
  ASSERT_EQ(mknod(OddPath("device.wasm").c_str(), S_IFCHR | 0644, makedev(1, 5)), 0);
  for (const auto& [name, what] : {std::pair("/odd/folder.wasm", "a directory"),
                                   {"/odd/fifo.wasm", "a FIFO"},
                                   {"/odd/device.wasm", "a device"}}) {
    SCOPED_TRACE(name);
    ExpectRefused(Claimed(WithOdd()), {name}, {name, what});
    ExpectRefused(WithOdd(), {name}, {name, what});
  }
}

/// What is there on the node, and not in the container.
TEST_F(WasmRefused, ALinkThatLeadsOut) {
  const std::string there = settings().guests + "/tool.wasm";
  ASSERT_EQ(symlink(there.c_str(), OddPath("absolute.wasm").c_str()), 0);
  ASSERT_EQ(symlink(("../../../../../../../../.." + there).c_str(), OddPath("up.wasm").c_str()), 0);
  for (const char* name : {"/odd/absolute.wasm", "/odd/up.wasm"}) {
    SCOPED_TRACE(name);
    ExpectRefused(WithOdd(), {name, "exit", "0"}, {name});
  }
  ASSERT_EQ(symlink("loop.wasm", OddPath("loop.wasm").c_str()), 0);
  ExpectRefused(WithOdd(), {"/odd/loop.wasm"}, {"loop.wasm", "too many links"});
}

/// It is the guest's, and not run before its Start.
TEST_F(WasmRefused, AStartFunctionWithoutEndHoldsNobodyUp) {
  for (const auto& [signal, code] : {std::pair("TERM", 143), {"KILL", 137}}) {
    const std::string id = Id(std::string("-") + signal);
    Program spinning = StartGuest(id, {"start_spin"});
    EXPECT_TRUE(WaitForState(id, "RUNNING"));
    EXPECT_EQ(RunGuest({"tool", "exit", "9"}).status, 9);
    EXPECT_EQ(Ctr({"tasks", "kill", "-s", signal, id}).status, 0);
    EXPECT_EQ(spinning.Wait(), code) << spinning.err();
  }
}

TEST_F(WasmRefused, AnAnnotationThatSaysNothing) {
  ExpectRefused(WithGuests({"--rm", "--annotation", "io.gantry.wasm/memory=plenty"}),
                Tool({"exit"}), {"io.gantry.wasm/memory", "plenty"});
}

}  // namespace
}  // namespace gantry::e2e
