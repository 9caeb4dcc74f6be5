// SPDX-License-Identifier: Apache-2.0
// Command components: the same guests as for modules, made components of.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Components, AreToldWhatModulesAre) {
  EXPECT_EQ(KindOf("hello_component"), static_cast<uint32_t>(GANTRY_WASM_COMMAND));
  const GuestEnd end =
      RunGuest({.name = "hello_component", .args = {"h", "two words"}, .env = {"A=1", "B=x=y"}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0u);
  EXPECT_EQ(end.out, "arg h\narg two words\nenv A=1\nenv B=x=y\n");
}

TEST(Components, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(RunGuest({.name = "hello_component", .args = {"h", "a\xff"}}).out,
            "arg h\narg a\xef\xbf\xbd\n");
}

// What preview 1 exits with is no more than a failure to preview 2.
TEST(Components, ExitWithNothingOrOne) {
  EXPECT_EQ(RunGuest({.name = "tool_component", .args = {"tool", "exit", "0"}}).code, 0u);
  const GuestEnd end = RunGuest({.name = "tool_component", .args = {"tool", "exit", "42"}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 1u);
}

TEST(Components, ATrapIsOne) {
  const GuestEnd end = RunGuest({.name = "tool_component", .args = {"tool", "trap"}});
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED);
  EXPECT_THAT(end.why, HasSubstr("unreachable"));
  EXPECT_EQ(RunGuest({.name = "tool_component", .args = {"tool", "recurse", "1"}}).end,
            GANTRY_WASM_TRAPPED);
}

TEST(Components, ReadInOneThread) {
  int in[2];
  int out[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC), 0);
  ASSERT_EQ(write(in[1], "word\n", 5), 5);
  RunningGuest guest(
      {.name = "tool_component", .args = {"tool", "cat"}, .in = in[0], .out = out[1]});
  char said[6] = "";
  EXPECT_EQ(read(out[0], said, 5), 5);
  EXPECT_STREQ(said, "word\n");
  EXPECT_EQ(guest.Threads(), 1);
  for (const int each : {in[0], in[1], out[0], out[1]}) {
    close(each);
  }
}

TEST(Components, HaveALimitOfMemory) {
  const GuestEnd end =
      RunGuest({.name = "tool_component", .args = {"tool", "grow", "100"}, .memory = 32 << 20});
  EXPECT_LT(std::atoi(end.out.c_str()), 32) << end.out;
}

TEST(Components, ReadFilesOfTheirDirectories) {
  const GuestEnd end = RunGuest({.name = "tool_component",
                                 .args = {"tool", "list", "/guests"},
                                 .directories = {{GANTRY_TEST_GUESTS, "/guests:ro"}}});
  EXPECT_EQ(end.code, 0u) << end.err;
  EXPECT_THAT(end.out, HasSubstr("tool.wasm\n"));
}

// Of these the engine's own are done by another thread.
TEST(Components, StreamFilesInOneThread) {
  char directory[] = "/tmp/gantry-streamed-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  int in[2];
  int out[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC), 0);
  RunningGuest guest({.name = "tool_component",
                      .args = {"tool", "stream", "/data/file"},
                      .directories = {{directory, "/data"}},
                      .in = in[0],
                      .out = out[1]});
  close(out[1]);
  std::string said;
  for (char byte = 0; byte != '\n' && read(out[0], &byte, 1) == 1;) {
    said += byte;
  }
  EXPECT_EQ(said, "200000 bytes, the same\n");
  EXPECT_EQ(guest.Threads(), 1);
  close(in[1]);
  const GuestEnd end = guest.End();
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0u) << end.err;
  EXPECT_EQ(std::filesystem::file_size(std::string(directory) + "/file"), 200000u);
  close(in[0]);
  close(out[0]);
  std::filesystem::remove_all(directory);
}

// A name is never looked up; the codes are those of `exit-with-code`.
TEST(Components, HaveSocketsWhereTheyMay) {
  const GuestEnd with =
      RunGuest({.name = "sockets_component", .args = {"sockets"}, .network = true});
  EXPECT_EQ(with.end, GANTRY_WASM_EXITED) << with.why;
  EXPECT_EQ(with.code, 3u);
  const GuestEnd without = RunGuest({.name = "sockets_component", .args = {"sockets"}});
  EXPECT_EQ(without.end, GANTRY_WASM_EXITED) << without.why;
  EXPECT_EQ(without.code, 8u);
}

TEST(Components, AreNotTakenForOthers) {
  const GuestEnd end = RunGuest({.name = "proxy_component", .args = {"proxy"}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_INVALID);
  EXPECT_THAT(end.why, HasSubstr("listening socket"));
}

}  // namespace
}  // namespace gantry::wasm
