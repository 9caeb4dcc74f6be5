// SPDX-License-Identifier: Apache-2.0
//
// Execs in the container of a guest: a module in its namespaces, and a program of its root.
#include <gmock/gmock.h>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmExec : public WasmTest {
 protected:
  void SetUp() override {
    WasmTest::SetUp();
    if (!IsSkipped()) {
      id_ = Id();
      StartDetached(id_, Tool({"sleep", "1000000"}), WithGuests({"--env", "OF=the container"}));
    }
  }

  void TearDown() override {
    if (!IsSkipped()) {
      Remove(id_);
    }
    WasmTest::TearDown();
  }

  std::string id_;
};

TEST_F(WasmExec, RunsAModule) {
  const Output output = Exec(id_, Tool({"streams", "inside"}));
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "out inside\n");
  EXPECT_EQ(output.err, "err inside\n");
  EXPECT_EQ(Exec(id_, Tool({"exit", "200"})).status, 200);
  EXPECT_EQ(Exec(id_, Tool({"trap"})).status, 134);
}

TEST_F(WasmExec, RunsAProgramOfTheRoot) {
  const Output output = Exec(id_, {"sh", "-c", "echo $OF; exit 3"});
  EXPECT_EQ(output.status, 3) << output.Text();
  EXPECT_EQ(output.out, "the container\n");
  EXPECT_THAT(Exec(id_, {"ps"}).out, HasSubstr("1 root")) << "the guest is its namespace's first";
}

TEST_F(WasmExec, ReadsItsInputToItsEnd) {
  const Output output = Exec(id_, Tool({"cat"}), {}, "some input\n");
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "some input\n");
}

TEST_F(WasmExec, SharesTheFilesOfItsContainer) {
  EXPECT_EQ(Exec(id_, {"sh", "-c", "echo seen >/tmp/note"}).status, 0);
  EXPECT_EQ(Exec(id_, Tool({"read", "/tmp/note"})).out, "seen\n");
}

TEST_F(WasmExec, NamesWhatIsNotThere) {
  const Output missing = Exec(id_, {"/no/such.wasm"});
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.err, HasSubstr("/no/such.wasm"));
}

}  // namespace
}  // namespace gantry::e2e
