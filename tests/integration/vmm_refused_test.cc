// SPDX-License-Identifier: Apache-2.0
//
// What a machine cannot be or have is refused by name, and one that does not boot says why; nothing
// of either is left.
#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class VmmRefused : public VmmTest {
 protected:
  /// With another handler than `vmm`.
  Output RunWith(const std::string& handler) {
    Words words{"run",        "--rm",
                "--runtime",  RuntimeOfHandler(handler),
                "--fifo-dir", node().fifo_dir(),
                kImage,       Id("-" + handler),
                "true"};
    return node().Ctr(words, {}, kLong);
  }
};

// U11, U4: with the console's last lines, and the machine is gone.
TEST_F(VmmRefused, AKernelThatPanicsSaysSo) {
  const Output output = RunWith(kVmmPanics);
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("Kernel panic"));
  ExpectNoMachine(node());
}

TEST_F(VmmRefused, AGuestThatNeverSaysHelloIsGivenUp) {
  const Output output = RunWith(kVmmSilent);
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("gantry guest: ready")) << "the console's last lines";
  ExpectNoMachine(node());
}

TEST_F(VmmRefused, AKernelThatIsNoFileIsNamed) {
  const Output output = RunWith(kVmmNoKernel);
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("/nowhere/kernel"));
}

TEST_F(VmmRefused, TheNodesNetworkIsNamed) {
  const Output output = RunScript("true", {"--net-host"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("network"));
}

TEST_F(VmmRefused, ACheckpointIsNamed) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const Output output = Ctr({"tasks", "checkpoint", id});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("checkpoint"));
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(VmmRefused, ADeviceOfTheHostIsNamed) {
  const Output output = RunScript("true", {"--device", "/dev/net/tun"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("/dev/net/tun"));
}

}  // namespace
}  // namespace gantry::e2e
