// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/vmm_root.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "tests/unit/vmm/machine/idle_vm.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::Each;
using testing::Not;
using testing::StartsWith;

class VmOfPaths : public IdleVm {
 public:
  std::vector<RootPath> Paths() const override { return paths; }

  std::vector<RootPath> paths;
};

class VmmRoot : public testing::Test {
 protected:
  std::vector<std::string> Shown(const std::string& program) const {
    std::vector<std::string> shown;
    for (const RootPath& one : RootOf(program, vm_, {})) {
      shown.push_back((one.writable ? "+" : "") + one.path);
    }
    return shown;
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  VmOfPaths vm_;
};

TEST_F(VmmRoot, HasLibrariesAndDevicesAndNothingElseOfTheNode) {
  const auto shown = Shown("/usr/bin/qemu-system-x86_64");
  EXPECT_THAT(shown, Contains("/usr"));
  EXPECT_THAT(shown, Contains("/dev/null"));
  EXPECT_THAT(shown, Each(testing::AnyOf(StartsWith("/usr"), StartsWith("/lib"),
                                         StartsWith("/dev/"), "/etc/ld.so.cache")));
  EXPECT_THAT(shown, Not(Contains("/usr/bin"))) << "it is in /usr";
}

TEST_F(VmmRoot, HasWhatItsProgramIsInstalledWith) {
  const std::string opt = folder_.path() + "/opt";
  ASSERT_EQ(mkdir(opt.c_str(), 0755), 0);
  EXPECT_THAT(Shown(opt + "/bin/qemu"), Contains(opt));
  EXPECT_THAT(Shown("/bin/qemu"), Not(Contains("/")));
  const std::string home = opt + "/home";
  ASSERT_EQ(mkdir(home.c_str(), 0755), 0);
  EXPECT_THAT(Shown(home + "/qemu"), Contains(home));
  EXPECT_THAT(Shown(home + "/qemu"), Not(Contains(opt)));
}

TEST_F(VmmRoot, HasWhatTheVmmNamesWhereItIs) {
  const std::string kernel = folder_.path() + "/kernel";
  ASSERT_TRUE(WriteFile(kernel, "", 0600));
  vm_.paths = {{.path = folder_.path() + "//./kernel"},
               {.path = folder_.path() + "/nowhere"},
               {.path = folder_.path() + "/", .writable = true}};
  const auto shown = Shown("/usr/bin/qemu");
  const auto folder = std::ranges::find(shown, "+" + folder_.path());
  const auto file = std::ranges::find(shown, kernel);
  ASSERT_NE(folder, shown.end());
  ASSERT_NE(file, shown.end()) << "for reading, in what can be written";
  EXPECT_LT(folder, file) << "what it lies in comes first";
  EXPECT_THAT(shown, Not(Contains(folder_.path() + "/nowhere")));
}

}  // namespace
}  // namespace gantry::vmm
