// SPDX-License-Identifier: Apache-2.0
//
// Programs that a plugin carries in itself; here this test does.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"

namespace gantry {
namespace {

TEST(Helper, IsTheProgramSealed) {
  const auto helper = OpenHelper("plugin_probe");
  ASSERT_TRUE(helper) << helper.error().message;
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  EXPECT_EQ(fcntl(helper->get(), F_GET_SEALS) & kSeals, kSeals);
  const std::string program = ReadFile(TEST_CARRIED_PROBE, size_t{1} << 30).value();
  EXPECT_TRUE(ReadAt(helper->get(), 0, program.size() + 1).value() == program) << "byte for byte";
}

TEST(Helper, HasNothingThatOnlyADebuggerReads) {
  const auto linked = std::filesystem::file_size(TEST_PROBE_PROGRAM);
  const auto carried = FileSize(OpenHelper("plugin_probe")->get());
  ASSERT_TRUE(carried) << carried.error().message;
  EXPECT_LT(*carried, linked);
}

TEST(Helper, IsOneForAllWhoOpenIt) {
  const auto first = OpenHelper("plugin_probe");
  const auto second = OpenHelper("plugin_probe");
  ASSERT_TRUE(first && second);
  struct stat one{};
  struct stat other{};
  ASSERT_EQ(fstat(first->get(), &one), 0);
  ASSERT_EQ(fstat(second->get(), &other), 0);
  EXPECT_EQ(one.st_ino, other.st_ino);
  EXPECT_NE(first->get(), second->get());
}

TEST(Helper, Runs) {
  const auto helper = OpenHelper("plugin_probe");
  ASSERT_TRUE(helper);
  os::SpawnRequest request{.argv = {"plugin_probe"}};
  request.program_fd = helper->get();
  auto spawned = os::SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  EXPECT_EQ(os::Child(std::move(*spawned)).Wait(), 120U) << "its answer without arguments";
}

TEST(Helper, ThatIsNotCarriedIsSaid) {
  const auto helper = OpenHelper("nobody");
  ASSERT_FALSE(helper);
  EXPECT_EQ(helper.error().code, Code::kNotFound);
  EXPECT_THAT(helper.error().message, testing::HasSubstr("'nobody'"));
}

}  // namespace
}  // namespace gantry
