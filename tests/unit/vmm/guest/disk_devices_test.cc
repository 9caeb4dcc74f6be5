// SPDX-License-Identifier: Apache-2.0
//
// Disks of the machine that are devices of a container.
#include "plugins/vmm/guest/disk_devices.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/vmm/protocol/annotations.h"

namespace gantry::vmm::guest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DiskDevices : public testing::Test {
 protected:
  DiskDevices() {
    EXPECT_EQ(::mknod(disk_.c_str(), S_IFBLK | 0600, makedev(7, 199)), 0);
    spec_.linux_spec.devices = {{.type = 'c', .path = "/dev/fuse", .major = 10, .minor = 229},
                                {.type = 'b', .path = "/dev/xvda", .major = 253, .minor = 3}};
  }

  void Say(const std::string& device, const std::string& file) {
    spec_.annotations[protocol::kDeviceAnnotation + device] = file;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string disk_ = folder_.path() + "/disk";
  oci::Spec spec_;
};

TEST_F(DiskDevices, GetTheNumbersThatTheyHaveHereAndMayBeUsed) {
  spec_.annotations["other"] = "x";
  Say("/dev/xvda", disk_);
  const auto rules = NumberDisks(spec_);
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_THAT(*rules, ElementsAre(cgroup::DeviceRule{
                          .allow = true, .type = 'b', .major = 7, .minor = 199}));
  EXPECT_EQ(spec_.linux_spec.devices[1].major, 7U);
  EXPECT_EQ(spec_.linux_spec.devices[1].minor, 199U);
  EXPECT_EQ(spec_.linux_spec.devices[0].major, 10U) << "others stay";
}

TEST_F(DiskDevices, RefuseWhatIsNone) {
  ASSERT_TRUE(WriteFile(folder_.path() + "/file", "", 0600));
  for (const auto& [device, file] :
       {std::pair{"/dev/other", disk_}, std::pair{"/dev/xvda", folder_.path() + "/file"},
        std::pair{"/dev/xvda", folder_.path() + "/gone"}}) {
    spec_.annotations.clear();
    Say(device, file);
    const auto rules = NumberDisks(spec_);
    ASSERT_FALSE(rules) << device << " " << file;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument);
    EXPECT_THAT(rules.error().message, HasSubstr(device));
  }
}

}  // namespace
}  // namespace gantry::vmm::guest
