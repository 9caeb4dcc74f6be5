// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/files/open_regular.h>

namespace gantry {
namespace {

class OpenRegularTest : public testing::Test {
 protected:
  OpenRegularTest() {
    std::string name = testing::TempDir() + "files-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    EXPECT_TRUE(WriteFile(dir_ + "/file", "text", 0600));
    EXPECT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
    EXPECT_EQ(symlink("file", (dir_ + "/link").c_str()), 0);
    EXPECT_EQ(symlink("/etc", (dir_ + "/etc").c_str()), 0);
    EXPECT_EQ(mkdir((dir_ + "/inside").c_str(), 0700), 0);
    EXPECT_TRUE(WriteFile(dir_ + "/inside/file", "inside", 0600));
  }

  ~OpenRegularTest() override { std::filesystem::remove_all(dir_); }

  Code OpenBelow(const std::string& path, const std::string& prefix) const {
    const std::string prefixes[] = {"/nonexistent", prefix};
    const auto opened = OpenRegularBelow(path, prefixes);
    return opened ? Code::kOk : opened.error().code;
  }

  std::string dir_;
};

/// They would wait for somebody who writes, or do something.
TEST_F(OpenRegularTest, AreReadWhereTheyAreFiles) {
  EXPECT_EQ(ReadFile(dir_ + "/file", 10).value_or("none"), "text");
  EXPECT_EQ(ReadFile(dir_ + "/link", 10).value_or("none"), "text");
  EXPECT_FALSE(ReadFile("/proc/self/stat", 4096).value_or("").empty());
  EXPECT_EQ(ReadFile(dir_ + "/fifo", 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadFile("/dev/null", 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadFile(dir_ + "/inside", 10).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadFile(dir_ + "/none", 10).error().code, Code::kNotFound);
}

TEST_F(OpenRegularTest, OfSomebodyElsesNamesLieBelowAPrefix) {
  EXPECT_EQ(OpenBelow(dir_ + "/file", dir_), Code::kOk);
  EXPECT_EQ(OpenBelow(dir_ + "//inside/file", dir_ + "/"), Code::kOk);
  EXPECT_EQ(OpenBelow(dir_ + "/file", dir_ + "/inside"), Code::kPermissionDenied);
  EXPECT_EQ(OpenBelow(dir_ + "/inside/../file", dir_ + "/inside"), Code::kPermissionDenied);
  EXPECT_EQ(OpenBelow(dir_ + "/insidefile", dir_ + "/inside"), Code::kPermissionDenied);
  EXPECT_EQ(OpenBelow("/etc/passwd", dir_), Code::kPermissionDenied);
  EXPECT_EQ(OpenBelow("file", dir_), Code::kInvalidArgument);
  EXPECT_EQ(OpenBelow(dir_ + "/none", dir_), Code::kNotFound);
  EXPECT_EQ(OpenBelow(dir_, dir_), Code::kPermissionDenied);
}

TEST_F(OpenRegularTest, OfSomebodyElsesNamesAreRegularAndNoLinks) {
  EXPECT_EQ(OpenBelow(dir_ + "/fifo", dir_), Code::kInvalidArgument);
  EXPECT_EQ(OpenBelow(dir_ + "/inside", dir_), Code::kInvalidArgument);
  EXPECT_EQ(OpenBelow("/dev/null", "/dev"), Code::kInvalidArgument);
  EXPECT_EQ(OpenBelow(dir_ + "/link", dir_), Code::kPermissionDenied);
  EXPECT_EQ(OpenBelow(dir_ + "/etc/passwd", dir_), Code::kPermissionDenied);
}

}  // namespace
}  // namespace gantry
