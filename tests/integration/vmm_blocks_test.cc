// SPDX-License-Identifier: Apache-2.0
//
// Files that guests have as disks or as copies, which is all that a hypervisor without virtiofs can
// give: they are the same with each hypervisor.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class VmmBlocks : public VmmTest {};

TEST_F(VmmBlocks, AnImageIsADiskThatTheGuestMounts) {
  const std::string image = settings().root + "/" + Id(".ext4");
  ASSERT_EQ(RunProgram({"mke2fs", "-q", "-t", "ext4", image, "8M"}).status, 0);
  const Words mount = {"--mount", "type=ext4,src=" + image + ",dst=/data,options=rw"};
  const Output written =
      RunScript("grep -c ' /data ext4 rw' /proc/mounts; echo kept >/data/file", mount);
  EXPECT_EQ(written.status, 0) << written.Text();
  EXPECT_EQ(written.out, "1\n");
  EXPECT_EQ(RunScript("cat /data/file", mount).out, "kept\n");
  std::filesystem::remove(image);
}

TEST_F(VmmBlocks, AFileForReadingIsThereWithItsContent) {
  const std::string file = settings().root + "/" + Id("-file");
  WriteText(file, "words\n");
  const Output output = RunScript("cat /f; echo x >/f", Bound(file, "/f", "rbind:ro"));
  EXPECT_NE(output.status, 0) << "it is read-only";
  EXPECT_EQ(output.out, "words\n");
  EXPECT_EQ(ReadText(file), "words\n");
  std::filesystem::remove(file);
}

TEST_F(VmmBlocks, ADirectoryIsRefusedByNameWithoutVirtiofs) {
  if (!settings().firecracker()) {
    GTEST_SKIP() << "this hypervisor has virtiofs";
  }
  const std::string folder = settings().root + "/" + Id("-folder");
  std::filesystem::create_directories(folder);
  const Output output = RunScript("true", Bound(folder, "/data", "rbind:rw"));
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("/data"), HasSubstr("no virtiofs"), HasSubstr("block device")));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gantry::e2e
