// SPDX-License-Identifier: Apache-2.0
#include "core/oci/bundle.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::oci {
namespace {

namespace fs = std::filesystem;

class CheckBundleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir.has_value());
    dir_ = std::move(*dir);
    fs::create_directory(path("bundle"));
  }

  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }

  Code CodeFor(const std::string& path) const {
    const auto status = CheckBundle(path);
    return status ? Code::kOk : status.error().code;
  }

  os::TempDir dir_;
};

TEST_F(CheckBundleTest, TakesADirectory) { EXPECT_EQ(CodeFor(path("bundle")), Code::kOk); }

TEST_F(CheckBundleTest, SaysThatNothingIsThere) { EXPECT_EQ(CodeFor(path("x")), Code::kNotFound); }

TEST_F(CheckBundleTest, RefusesPathsThatAreNotPlain) {
  for (const std::string& bad :
       {std::string(), std::string("bundle"), std::string("/"), path("bundle/"), path("./bundle"),
        path("../bundle"), path("bundle/.."), path("/bundle"), path("bundle") + '\0',
        "/" + std::string(5000, 'a')}) {
    EXPECT_EQ(CodeFor(bad), Code::kInvalidArgument) << bad.substr(0, 100);
  }
}

TEST_F(CheckBundleTest, RefusesALinkElsewhere) {
  fs::create_directory_symlink(path("bundle"), path("link"));
  EXPECT_EQ(CodeFor(path("link")), Code::kInvalidArgument);
}

TEST_F(CheckBundleTest, RefusesAFile) {
  ASSERT_TRUE(ReplaceFile(path("file"), "x", 0600).has_value());
  EXPECT_EQ(CodeFor(path("file")), Code::kInvalidArgument);
  EXPECT_NE(CodeFor(path("file/below")), Code::kOk);
}

TEST_F(CheckBundleTest, RefusesADirectoryForEveryone) {
  fs::permissions(path("bundle"), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(CodeFor(path("bundle")), Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::oci
