// SPDX-License-Identifier: Apache-2.0
//
// The end of an input is no end of the output.
#include <filesystem>

#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/fifo_reader.h"
#include "tests/contract/harness/inside.h"

namespace gantry::contract {
namespace {

class ClosedInput : public InsideTest {
 protected:
  /// In the container's root, of which each container has the same.
  static void Touch(const Box& box, const std::string& exec, const std::string& path) {
    ASSERT_OK(box.Exec(exec, {"touch", path}));
    ASSERT_OK(box.Start(exec));
    EXPECT_EQ(Got(box.Wait(exec)).exit_status(), 0U);
    EXPECT_OK(box.Delete(exec));
  }
};

/// containerd closes the input of an exec that has none as soon as it has started.
TEST_P(ClosedInput, OfAnExecCutsNothingOfItsOutput) {
  constexpr int kLines = 3;
  const std::string name = "/tmp/" + Unique("line");
  const Box& box = Running();
  FifoReader out(node().root() + "/" + Id() + ".out");
  const std::string script = "i=1; while [ $i -le 3 ]; do until [ -e " + name +
                             "$i ]; do sleep 0.05; done; echo line $i; i=$((i+1)); done; exit 7";
  ASSERT_OK(box.Exec("x1", {"sh", "-c", script}, false, out.path()));
  ASSERT_OK(box.Start("x1"));
  const Status closed = box.CloseIO("x1");
  if (!IsLeftOut("CloseIO", CodeOf(closed))) {
    EXPECT_OK(closed);
  }
  for (int line = 1; line <= kLines; ++line) {
    const std::string number = std::to_string(line);
    Touch(box, "touch" + number, name + number);
    EXPECT_TRUE(out.ReadUntil("line " + number + "\n")) << out.text();
  }
  EXPECT_EQ(Got(box.Wait("x1")).exit_status(), 7U);
  EXPECT_TRUE(out.ReadToEnd());
  for (int line = 1; line <= kLines; ++line) {
    std::filesystem::remove(node().rootfs() + name + std::to_string(line));
  }
}

INSTANTIATE_CONTRACT(ClosedInput);

}  // namespace
}  // namespace gantry::contract
