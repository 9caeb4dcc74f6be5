// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/slice_path.h"

#include <gtest/gtest.h>

namespace gantry::cgroup {
namespace {

TEST(SlicePath, IsWhereSystemdKeepsTheSlice) {
  EXPECT_EQ(*SlicePath("a.slice"), "/a.slice");
  EXPECT_EQ(*SlicePath("a-b.slice"), "/a.slice/a-b.slice");
  EXPECT_EQ(*SlicePath("a-b-c_1.slice"), "/a.slice/a-b.slice/a-b-c_1.slice");
  EXPECT_EQ(*SlicePath("-.slice"), "/");
}

TEST(SlicePath, RefusesWhatIsNoSlice) {
  for (const char* name : {"", "a", ".slice", "-a.slice", "a-.slice", "a--b.slice", "a/b.slice"}) {
    const Result<std::string> path = SlicePath(name);
    ASSERT_FALSE(path) << name;
    EXPECT_EQ(path.error().code, Code::kInvalidArgument) << name;
    EXPECT_EQ(path.error().message, "'" + std::string(name) + "': not the name of a slice");
  }
}

}  // namespace
}  // namespace gantry::cgroup
