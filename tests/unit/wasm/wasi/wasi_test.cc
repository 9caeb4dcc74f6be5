// SPDX-License-Identifier: Apache-2.0
//
// Each function of WASI preview 1, called by a guest in a container of its own: what it does, and
// with which error it does not (tests/guests/wasi). docs/wasi.md has the table.
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/guests/wasi/functions.h"
#include "tests/unit/wasm/program/guest_fixture.h"
#include "tests/unit/wasm/wasi/artifact.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;

#define NAME(name) #name,
constexpr const char* kFunctions[] = {WASI_FUNCTIONS(NAME)};
#undef NAME
static_assert(std::size(kFunctions) == 46, "as many as preview 1 has");

class WasiTest : public GuestTest {
 protected:
  static const std::string& Artifact() {
    static const std::string artifact = Compiled(GANTRY_TEST_GUESTS "/wasi.wasm");
    return artifact;
  }

  /// Its last argument is `test`; it has one directory that can be written, and one that cannot.
  static container::Config ConfigFor(const std::string& test) {
    return {.script = test,
            .mounts = Format(R"({{"destination": "/guests", "type": "bind", "source": "{}",
                                  "options": ["rbind", "ro"]}})",
                             GANTRY_TEST_GUESTS)};
  }

  std::string RunFor(const std::string& test) { return Run(Artifact(), ConfigFor(test)); }
};

class WasiFunction : public WasiTest, public testing::WithParamInterface<const char*> {};

TEST_P(WasiFunction, IsAsTheTableSays) {
  const std::string name = GetParam();
  EXPECT_EQ(RunFor(name), name == "proc_exit" ? "exit 77" : "exit 0");
}

INSTANTIATE_TEST_SUITE_P(Preview1, WasiFunction, testing::ValuesIn(kFunctions),
                         [](const auto& of) { return std::string(of.param); });

TEST_F(WasiTest, FailsWhereSomethingIsNotAsExpected) {
  EXPECT_EQ(RunFor("no_such_function"), "there is no test 'no_such_function'\nexit 255");
  const std::string without = Run(Artifact(), {.script = "fd_prestat_dir_name"});
  EXPECT_EQ(without, "no directory is given as '/guests': error 8\nexit 1");
}

TEST_F(WasiTest, TrapsWithAValueThatThereIsNot) {
  EXPECT_THAT(RunFor("no_clock"),
              AllOf(StartsWith("Invalid enum value Clockid\n"), EndsWith("exit 134")));
}

TEST_F(WasiTest, WaitsForItsInputAndItsEnd) {
  const auto guest = Made(Artifact(), ConfigFor("poll_input"));
  ASSERT_TRUE(guest->Open());
  ASSERT_EQ(guest->Output("waits\n"), "waits\n");
  guest->Say("x");
  ASSERT_EQ(guest->Output("read\n"), "read\n");
  guest->CloseInput();
  EXPECT_EQ(guest->Rest(), "exit 0");
}

}  // namespace
}  // namespace gantry::wasm
