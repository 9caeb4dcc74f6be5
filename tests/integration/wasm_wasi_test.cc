// SPDX-License-Identifier: Apache-2.0
//
// The functions of WASI preview 1 in a container of containerd's: all in one run. The tests of each
// alone are tests/unit/wasm/wasi.
#include <gmock/gmock.h>

#include "tests/guests/wasi/functions.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

class WasmWasi : public WasmTest {};

TEST_F(WasmWasi, HasAllFunctionsAndTheErrorsOfTheTable) {
  const Output output = RunGuest({"wasi", "all"});
  EXPECT_EQ(output.status, 0) << output.Text();
  std::string expected;
  for (const std::string name : {
#define NAME(name) #name,
           WASI_FUNCTIONS(NAME)
#undef NAME
       }) {
    expected += name == "proc_exit" ? "" : "ok " + name + "\n";
  }
  EXPECT_EQ(output.out, expected);
  EXPECT_EQ(RunGuest({"wasi", "proc_exit"}).status, 77);
}

}  // namespace
}  // namespace gantry::e2e
