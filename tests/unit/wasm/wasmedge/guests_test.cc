// SPDX-License-Identifier: Apache-2.0
//
// How guests end in WasmEdge, what they are given, and what it has of its own.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

TEST(EdgeGuests, EndWithTheirCode) {
  for (const uint32_t code : {0U, 1U, 42U, 126U, 200U, 255U}) {
    const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "exit", std::to_string(code)}});
    EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
    EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
    EXPECT_EQ(end.code, code);
  }
  EXPECT_EQ(RunGuest({.name = "exit", .args = {"exit"}}).code, 200U) << "the last byte is left";
}

TEST(EdgeGuests, ATrapIsSaid) {
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "trap"}});
  EXPECT_EQ(end.end, GANTRY_WASM_TRAPPED);
  EXPECT_THAT(end.why, HasSubstr("unreachable"));
  EXPECT_EQ(end.err, "") << "the engine's own log is off";
  EXPECT_EQ(RunGuest({.name = "start_trap", .args = {"start_trap"}}).end, GANTRY_WASM_TRAPPED);
}

// Were it run while it is prepared, Create would never be answered.
TEST(EdgeGuests, AStartFunctionIsNotRunBeforeTheGuestIs) {
  const GuestEnd end =
      RunGuest({.name = "start_spin", .args = {"start_spin"}, .only_prepare = true});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.prepared, GANTRY_WASM_OK) << end.why;
}

TEST(EdgeGuests, HaveArgumentsAndEnvironmentOfTheRequestAlone) {
  setenv("GANTRY_TEST_OF_THE_ENGINE", "not for guests", 1);
  const GuestEnd end = RunGuest(
      {.name = "hello", .args = {"/hello.wasm", "", "a\xff\xc0z"}, .env = {"A=1", "B=x=y", "C="}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.out, "arg /hello.wasm\narg \narg a\xff\xc0z\nenv A=1\nenv B=x=y\nenv C=\n");
}

TEST(EdgeGuests, AnOutputThatNobodyReadsIsAnErrorOfTheirs) {
  constexpr uint32_t kBrokenPipe = 64;  // As WASI numbers it.
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  close(out[0]);
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "big", "100000"}, .out = out[1]});
  close(out[1]);
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, kBrokenPipe);
}

TEST(EdgeGuests, HaveStreamsAndRandomNumbersOfTheirOwn) {
  const GuestEnd end = RunGuest({.name = "tool", .args = {"tool", "streams", "x"}});
  EXPECT_EQ(end.out, "out x\n");
  EXPECT_EQ(end.err, "err x\n");
  const GuestEnd first = RunGuest({.name = "tool", .args = {"tool", "random"}});
  EXPECT_THAT(first.out, SizeIs(33));
  EXPECT_NE(first.out, RunGuest({.name = "tool", .args = {"tool", "random"}}).out);
}

TEST(EdgeGuests, AreOneThreadThatReadsToTheEnd) {
  int in[2];
  int out[2];
  ASSERT_EQ(pipe2(in, 0), 0);
  ASSERT_EQ(pipe2(out, 0), 0);
  RunningGuest guest({.name = "tool", .args = {"tool", "cat"}, .in = in[0], .out = out[1]});
  close(in[0]);
  close(out[1]);
  EXPECT_EQ(write(in[1], "word", 4), 4);
  char read_back[5] = "";
  EXPECT_EQ(read(out[0], read_back, 4), 4);
  EXPECT_STREQ(read_back, "word");
  EXPECT_EQ(guest.Threads(), 1);
  close(in[1]);
  const GuestEnd end = guest.End();
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0U);
  close(out[0]);
}

TEST(EdgeGuests, HaveItsSockets) {
  const GuestEnd end = RunGuest({.name = "edge_sockets", .args = {"s"}, .network = true});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0U);
}

// An image's nsswitch.conf names libraries, which would be the image's code.
TEST(EdgeGuests, LookNamesUpWithoutCodeOfTheImage) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "changes its root, which needs root";
  }
  char made[] = "/tmp/gantry-root-XXXXXX";
  const std::string root = mkdtemp(made);
  std::filesystem::create_directories(root + "/etc");
  std::ofstream(root + "/etc/nsswitch.conf") << "hosts: of_the_image\nservices: of_the_image\n";
  std::ofstream(root + "/etc/hosts") << "127.0.0.9 here\n";
  std::ofstream(root + "/etc/services") << "http 80/tcp\n";
  const GuestEnd end =
      RunGuest({.name = "edge_lookup", .args = {"l"}, .network = true, .root = root});
  std::filesystem::remove_all(root);
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 0U);
}

TEST(EdgeGuests, AreModules) {
  const GuestEnd end = RunGuest({.name = "hello_component", .args = {"h"}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_INVALID);
  EXPECT_THAT(end.why, HasSubstr("a component"));
}

TEST(EdgeGuests, OfADirectoryWithAColonItIsSaid) {
  const GuestEnd end =
      RunGuest({.name = "tool", .args = {"tool"}, .directories = {{"/", "/data:other"}}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_INVALID);
  EXPECT_THAT(end.why, HasSubstr("'/data:other'"));
}

TEST(EdgeGuests, TheEngineSaysItsVersion) {
  EXPECT_THAT(gantry_wasm_engine(), StartsWith("wasmedge 0."));
}

}  // namespace
}  // namespace gantry::wasm
