// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

namespace gantry {
namespace {

std::string PathOf(const UniqueFd& fd) { return Format("/proc/self/fd/{}", fd.get()); }

/// Root may open the file anew for writing, whoever has opened it for reading.
TEST(SealedMemfd, CannotBeChangedByWhoeverHasIt) {
  const auto file = SealedMemfd("text", "what it says", MemfdUse::kRead);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(ReadFile(PathOf(*file), 100).value_or(""), "what it says");
  EXPECT_EQ(fcntl(file->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  const UniqueFd writer(open(PathOf(*file).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(WriteAt(writer.get(), 0, "x").error().sys_errno, EPERM);
  EXPECT_FALSE(Truncate(writer.get(), 0));
  EXPECT_FALSE(Truncate(writer.get(), 100));
  EXPECT_EQ(mmap(nullptr, 4, PROT_WRITE, MAP_SHARED, writer.get(), 0), MAP_FAILED);
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  EXPECT_EQ(fcntl(file->get(), F_GET_SEALS) & kSeals, kSeals);
}

TEST(SealedMemfd, IsAProgramWhereItIsOne) {
  const auto program = SealedMemfd("program", "#!/bin/true\n", MemfdUse::kExecute);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(IsExecutable(PathOf(*program)));
  EXPECT_FALSE(IsExecutable(PathOf(*SealedMemfd("text", "", MemfdUse::kRead))));
}

TEST(SealedMemfd, HasAPositionForEachThatOpensIt) {
  const auto file = SealedMemfd("text", "abc", MemfdUse::kRead);
  ASSERT_TRUE(file);
  const auto other = ReopenForReading(*file);
  ASSERT_TRUE(other);
  char byte = 0;
  EXPECT_EQ(read(file->get(), &byte, 1), 1);
  EXPECT_EQ(read(other->get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
}

}  // namespace
}  // namespace gantry
