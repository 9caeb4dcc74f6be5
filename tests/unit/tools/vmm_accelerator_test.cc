// SPDX-License-Identifier: Apache-2.0
//
// tools/lib/vmm_accelerator.sh, with a program in place of the one that looks at the node.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "core/os/fs.h"
#include "tests/harness/program.h"

namespace {

namespace fs = std::filesystem;
using gantry::e2e::Output;
using ::testing::HasSubstr;

class VmmAccelerator : public ::testing::Test {
 protected:
  VmmAccelerator() : dir_(*gantry::os::TempDir::Create()) {
    fs::create_directory_symlink(fs::path(GANTRY_SOURCE_DIR) / "tools",
                                 fs::path(dir_.path()) / "tools");
  }

  /// What is said, and what a suite's program gets. `found`: what the other program does.
  Output Choose(const std::string& found, const std::string& wanted) const {
    const fs::path program = fs::path(dir_.path()) / "accelerator";
    std::ofstream(program) << "#!/bin/sh\n" << found << "\n";
    fs::permissions(program, fs::perms::owner_all);
    gantry::e2e::Program::Options options;
    options.env = {{"GANTRY_VMM_ACCEL", wanted},
                   {"GANTRY_CACHE", std::string(dir_.path()) + "/cache"}};
    const std::string lib = std::string(dir_.path()) + "/tools/lib/";
    gantry::e2e::Program bash({"bash", "-c",
                               "set -euo pipefail\n. '" + lib + "ui.sh'\n. '" + lib +
                                   "vmm_accelerator.sh'\nVMM_ACCELERATOR='" + program.string() +
                                   "'\nchoose_vmm_accelerator /the/kernel\n"
                                   "sh -c 'echo \"a suite has $GANTRY_VMM_ACCEL\"'\n"},
                              options);
    return bash.Finish(gantry::e2e::kLong);
  }

  gantry::os::TempDir dir_;
};

TEST_F(VmmAccelerator, IsWhatTheNodeHas) {
  const Output kvm = Choose("echo \"kvm KVM works (API version 12), for $1\"", "");
  EXPECT_EQ(kvm.status, 0) << kvm.Text();
  EXPECT_EQ(kvm.out,
            "  vmm: guests run with kvm: KVM works (API version 12), for /the/kernel\n"
            "a suite has kvm\n");
  const Output tcg = Choose("echo 'tcg KVM is not used: open /dev/kvm: no such file'", "");
  EXPECT_EQ(tcg.status, 0) << tcg.Text();
  EXPECT_EQ(tcg.out,
            "  vmm: guests run with tcg: KVM is not used: open /dev/kvm: no such file\n"
            "a suite has tcg\n");
}

TEST_F(VmmAccelerator, IsWhatTheCallerSays) {
  const Output output = Choose("echo 'kvm KVM works'", "tcg");
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "  vmm: guests run with tcg: GANTRY_VMM_ACCEL says so\na suite has tcg\n");
}

TEST_F(VmmAccelerator, IsNeitherAWordOfItsOwnNorNothing) {
  const Output word = Choose("echo 'kvm KVM works'", "fast");
  EXPECT_EQ(word.status, 1);
  EXPECT_THAT(word.out, HasSubstr("GANTRY_VMM_ACCEL is 'fast': kvm, tcg, or nothing"));
  const Output broken = Choose("exit 3", "");
  EXPECT_EQ(broken.status, 3);
  EXPECT_EQ(broken.out, "");
}

}  // namespace
