// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/vm_end.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(ConsoleTail, IsTheLastLinesInOrder) {
  std::string console;
  for (int i = 0; i < 100; ++i) {
    console += "line " + std::to_string(i) + "\r\n";
  }
  EXPECT_THAT(ConsoleTail(console), EndsWith("| line 97 | line 98 | line 99"));
  EXPECT_EQ(ConsoleTail(console).find("line 87"), std::string::npos);
  EXPECT_EQ(ConsoleTail("only"), "only");
  EXPECT_EQ(ConsoleTail("\n\n"), "");
}

TEST(ConsoleTail, IsShortAndPlainWhateverAGuestWrites) {
  const std::string long_line(1 << 20, 'x');
  EXPECT_LE(ConsoleTail(long_line).size(), 1024U);
  EXPECT_EQ(ConsoleTail(std::string("a\x1b[2Jb\0c\xff", 8)), "a[2Jbc");
}

TEST(ConsoleTail, EndsWithThePanicAndNotWithItsRegisters) {
  std::string console = "one\n[1.0] Kernel panic - not syncing: no init\n";
  for (int i = 0; i < 100; ++i) {
    console += "[1.1] R10: 0000000000000000\n";
  }
  EXPECT_EQ(ConsoleTail(console), "one | [1.0] Kernel panic - not syncing: no init");
}

TEST(ConsoleTail, SaysThatItCannotBeRead) {
  EXPECT_THAT(ConsoleTailOf("/nowhere/console"), HasSubstr("unreadable"));
}

TEST(PanicIn, FindsTheKernelsWords) {
  EXPECT_EQ(PanicIn("[1.0] x\n[1.1] Kernel panic - not syncing: VFS: no root\n[1.2] y"),
            "not syncing: VFS: no root");
  EXPECT_EQ(PanicIn("all is well"), "");
}

TEST(BootFailure, QuotesTheConsole) {
  const os::TempDir folder = os::TempDir::Create().value();
  const std::string path = folder.path() + "/console";
  ASSERT_TRUE(WriteFile(path, "one\nKernel panic - not syncing: no init\n", 0600));
  const Error error = BootFailure(
      "QEMU", {.cause = EndCause::kGuestPanic, .words = "the guest's kernel panicked"}, path);
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.message,
            "boot the VM: the guest's kernel panicked before the guest's agent said hello; QEMU's "
            "console ended with: one | Kernel panic - not syncing: no init");
  EXPECT_EQ(BootTooSlow("QEMU", path).code, Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace gantry::vmm
