// SPDX-License-Identifier: Apache-2.0
//
// Containers in machines of their own under `ctr run`: whose kernel it is, what they see of the
// host, and how they end.
#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class VmmRun : public VmmTest {};

TEST_F(VmmRun, HasAKernelOfItsOwn) {
  const Output output = RunScript("cat /proc/sys/kernel/random/boot_id; uname -r; id -u");
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_THAT(output.out, HasSubstr("cloud"));
  EXPECT_THAT(output.out, HasSubstr("\n0\n"));
  EXPECT_THAT(output.out, Not(HasSubstr(ReadText(kBootId))));
}

TEST_F(VmmRun, SeesNothingOfTheHostAndOfTheAgent) {
  const Output output = RunScript("ls /proc | grep -c '^[0-9]'; cat /proc/1/comm; ls /run");
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_THAT(output.out, HasSubstr("sh\n"));
  EXPECT_THAT(output.out, Not(HasSubstr("gantry")));
}

TEST_F(VmmRun, EndsWithEachExitCode) {
  for (const int code : {0, 1, 42, 126, 255}) {
    const Output output = RunScript("exit " + std::to_string(code));
    EXPECT_EQ(output.status, code) << output.Text();
  }
}

TEST_F(VmmRun, TellsASignalOfTheGuest) {
  const Output output = RunScript("sh -c 'kill -TERM $$'; exit $?");
  EXPECT_EQ(output.status, 128 + 15) << output.Text();
}

TEST_F(VmmRun, KeepsItsStreamsApart) {
  const Output output = RunScript("echo out; echo err >&2");
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
}

TEST_F(VmmRun, SaysAllOfMuchOutput) {
  const Output output = RunScript("head -c 3000000 /dev/zero");
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out.size(), 3'000'000U);
}

TEST_F(VmmRun, OfAProgramThatIsNotThereLeavesNothing) {
  const std::string id = Id();
  const Output output = RunContainer({"--rm"}, id, {"/bin/nowhere"}, {}, kLong);
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("/bin/nowhere"));
  ExpectNoMachine(node());
  const Output again = RunContainer({"--rm"}, id, {"true"}, {}, kLong);
  EXPECT_EQ(again.status, 0) << "the id is free: " << again.Text();
}

}  // namespace
}  // namespace gantry::e2e
