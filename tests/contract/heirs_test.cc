// SPDX-License-Identifier: Apache-2.0
//
// What an exec leaves running may hold its output: the client sees the end all the same.
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/fifo_reader.h"

namespace gantry::contract {
namespace {

/// Says a word and ends; what it leaves says another one when it is let, and goes on.
constexpr const char* kLeavesAnHeir =
    "echo main; (while ! test -e /tmp/go; do sleep 1; done; echo heir; sleep 1000) & exit 3";

class Heirs : public ContractTest {
 protected:
  std::string Path() const { return node().root() + "/" + Id() + ".out"; }

  /// An exec that has ended and left an heir.
  void Leave(const Box& box, FifoReader& out, const std::string& script) {
    ASSERT_OK(box.Exec("leaving", {"sh", "-c", script}, false, out.path()));
    ASSERT_OK(box.Start("leaving"));
    ASSERT_TRUE(out.ReadUntil("main\n"));
    EXPECT_EQ(Got(box.Wait("leaving")).exit_status(), 3U);
  }
};

TEST_P(Heirs, HoldNoOutputOpenThatIsDeleted) {
  const Box& box = Running();
  FifoReader out(Path());
  Leave(box, out, kLeavesAnHeir);
  ASSERT_OK(box.Delete("leaving"));
  EXPECT_TRUE(out.ReadToEnd());
  EXPECT_EQ(out.text(), "main\n");
}

TEST_P(Heirs, HoldNoOutputOpenForEver) {
  const Box& box = Running();
  FifoReader out(Path());
  Leave(box, out, kLeavesAnHeir);
  EXPECT_TRUE(out.ReadToEnd());
  EXPECT_EQ(out.text(), "main\n");
  EXPECT_OK(box.Delete("leaving"));
}

TEST_P(Heirs, HoldNoOutputOpenForTheNextEngine) {
  const Box& box = Running();
  FifoReader out(Path());
  Leave(box, out, kLeavesAnHeir);
  node().KillEngine();
  EXPECT_TRUE(out.ReadToEnd());
  EXPECT_EQ(out.text(), "main\n");
  EXPECT_OK(box.Delete("leaving"));
}

INSTANTIATE_CONTRACT(Heirs);

}  // namespace
}  // namespace gantry::contract
