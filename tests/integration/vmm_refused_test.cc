// SPDX-License-Identifier: Apache-2.0
//
// What a machine cannot be or have is refused by name, and one that does not boot says why; nothing
// of either is left.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class VmmRefused : public VmmTest {
 protected:
  /// With another handler than `vmm`, whose machine does not come to an agent: it has ended when
  /// that is told.
  Output RunWith(const std::string& handler) {
    Words words{"run",        "--rm",
                "--runtime",  RuntimeOfHandler(handler),
                "--fifo-dir", node().fifo_dir(),
                kImage,       Id("-" + handler),
                "true"};
    Output output = node().Ctr(words, {}, kLong);
    for (const char* const program : {kQemu, kVsock, kVirtiofsd}) {
      EXPECT_TRUE(Helpers(program).empty()) << Describe(Helpers(program));
    }
    EXPECT_NE(output.status, 0);
    return output;
  }
};

// U11, U4: with the console's last lines.
TEST_F(VmmRefused, AGuestThatPanicsSaysSo) {
  EXPECT_THAT(RunWith(kVmmPanics).err, HasSubstr("Kernel panic"));
}

TEST_F(VmmRefused, AGuestThatNeverSaysHelloIsGivenUp) {
  EXPECT_THAT(RunWith(kVmmSilent).err, HasSubstr("gantry guest: ready"));
}

TEST_F(VmmRefused, AnImageThatIsNotThereIsNamed) {
  EXPECT_THAT(RunWith(kVmmNoKernel).err, HasSubstr("/nowhere/kernel"));
  EXPECT_THAT(RunWith(kVmmNoInitrd).err, HasSubstr("/nowhere/initrd"));
}

TEST_F(VmmRefused, AnImageOfAnotherMachineIsNamed) {
  EXPECT_THAT(RunWith(kVmmOtherKernel).err, HasSubstr(settings().root + "/other-kernel"));
  const Output output = RunWith(kVmmOtherInitrd);
  EXPECT_THAT(output.err, HasSubstr("/init"));
  EXPECT_THAT(output.err, HasSubstr("Kernel panic"));
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
  const std::string card = settings().root + "/card";
  constexpr unsigned kGraphics = 226;
  ASSERT_EQ(mknod(card.c_str(), S_IFCHR | 0600, makedev(kGraphics, 0)), 0) << errno;
  const Output output = RunScript("true", {"--device", card});
  std::filesystem::remove(card);
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr(card));
}

}  // namespace
}  // namespace gantry::e2e
