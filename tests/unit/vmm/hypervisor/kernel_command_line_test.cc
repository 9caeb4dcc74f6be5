// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/kernel_command_line.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(KernelCommandLine, KeepsDefencesInProduction) {
  const auto line = KernelCommandLine({});
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, AllOf(HasSubstr("console=ttyS0"), HasSubstr("panic=-1"),
                           Not(HasSubstr("mitigations")), Not(HasSubstr("nokaslr")),
                           Not(HasSubstr("lsm=")), HasSubstr("init_on_alloc=1")));
}

TEST(KernelCommandLine, LeavesOutWhatTcgDoesNotNeed) {
  const auto line =
      KernelCommandLine({.profile = CmdlineProfile::kTcg, .tsc_khz = 2'596'140, .extra = {}});
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, AllOf(HasSubstr("mitigations=off"), HasSubstr("nokaslr"),
                           EndsWith("tsc_early_khz=2596140 lpj=10384560")));
}

// What virtiofsd writes to the guest's memory QEMU's translator does not see: a page that had code
// and gets a program of a volume's would run the old one, unless the kernel has written in between.
TEST(KernelCommandLine, MemoryIsOverwrittenBeforeItIsUsedAgain) {
  for (const CmdlineProfile profile : {CmdlineProfile::kProduction, CmdlineProfile::kTcg}) {
    EXPECT_THAT(KernelCommandLine({.profile = profile, .extra = {}}).value(),
                HasSubstr(" init_on_alloc=1 "));
  }
}

TEST(KernelCommandLine, HasTheHandlersWordsLast) {
  EXPECT_THAT(KernelCommandLine({.extra = "quiet debug=1"}).value(), EndsWith(" quiet debug=1"));
  EXPECT_EQ(KernelCommandLine({.extra = "a\nb"}).error().code, Code::kInvalidArgument);
}

TEST(KernelCommandLine, OfAMicrovmNeedsAClockUnderTcg) {
  CmdlineRequest request{
      .profile = CmdlineProfile::kTcg, .machine = QemuMachine::kMicrovm, .extra = {}};
  const auto without = KernelCommandLine(request);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, Code::kFailedPrecondition);
  request.tsc_khz = 1000;
  EXPECT_THAT(KernelCommandLine(request).value(), HasSubstr("pcie_ports=native"));
  request.profile = CmdlineProfile::kProduction;
  request.tsc_khz = 0;
  EXPECT_THAT(KernelCommandLine(request).value(), Not(HasSubstr("tsc_early_khz")));
}

TEST(KernelCommandLine, LetsFirecrackerReset) {
  EXPECT_THAT(KernelCommandLine({.vmm = Vmm::kFirecracker, .extra = {}}).value(),
              EndsWith("reboot=k gantry.off=reboot gantry.pci=rescan"));
}

TEST(KernelCommandLine, IsTheTableOfTheReadme) {
  std::ostringstream readme;
  readme << std::ifstream(GANTRY_HYPERVISOR_README).rdbuf();
  for (const CmdlineWord& one : CmdlineWords()) {
    const auto mark = [](bool there) { return there ? std::string("yes") : std::string("no"); };
    EXPECT_THAT(readme.str(),
                HasSubstr("| `" + std::string(one.word) + "` | " + mark(one.production) + " | " +
                          mark(one.tcg) + " | " + std::string(one.reason) + " |"));
  }
}

}  // namespace
}  // namespace gantry::vmm
