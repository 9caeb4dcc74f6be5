// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/root_image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::gvisor {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RootImage : public testing::Test {
 protected:
  RootImage() {
    options_.image_prefixes = {folder_.path()};
    EXPECT_TRUE(WriteFile(Path("one.erofs"), "image", 0600));
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// Of a container with that image.
  Error Refusal(const std::string& path) const {
    Spec spec;
    spec.mounts.push_back(
        {.conf = {MountConf::Lower::kErofs, MountConf::Upper::kMemory}, .source = path});
    const Status checked = CheckRootImage(spec, options_);
    EXPECT_FALSE(checked) << path;
    return checked ? Error() : checked.error();
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  Options options_;
};

TEST_F(RootImage, IsOpenedWhereTheOperatorSaysThatImagesAre) {
  const auto image = OpenRootImage(Path("one.erofs"), options_);
  ASSERT_TRUE(image) << image.error().message;
  char bytes[8] = {};
  EXPECT_EQ(read(image->get(), bytes, sizeof(bytes)), 5);
}

TEST_F(RootImage, IsRefusedWhereTheOperatorHasSaidNothing) {
  options_.image_prefixes.clear();
  const Error refused = Refusal(Path("one.erofs"));
  EXPECT_EQ(refused.code, Code::kPermissionDenied);
  EXPECT_THAT(refused.message,
              AllOf(HasSubstr("'dev.gvisor.spec.rootfs.source'"), HasSubstr("'image_prefixes'")));
}

TEST_F(RootImage, IsNoFileOfTheHosts) {
  EXPECT_EQ(Refusal("/etc/passwd").code, Code::kPermissionDenied);
  EXPECT_EQ(Refusal(Path("../passwd")).code, Code::kPermissionDenied);
  EXPECT_EQ(Refusal("/dev/null").code, Code::kPermissionDenied);
  ASSERT_EQ(symlink("/etc/passwd", Path("link").c_str()), 0);
  EXPECT_EQ(Refusal(Path("link")).code, Code::kPermissionDenied);
}

/// Nobody writes into it, and the thread would never come back.
TEST_F(RootImage, IsNoFifo) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const Error refused = Refusal(Path("fifo"));
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_THAT(refused.message, HasSubstr("no regular file"));
}

TEST_F(RootImage, IsNotAskedForOfADirectory) {
  Spec spec;
  spec.mounts.push_back({.conf = {}, .source = "/"});
  EXPECT_TRUE(CheckRootImage(spec, Options()));
}

TEST_F(RootImage, HasPrefixesThatAreAbsolute) {
  const auto options = ParseOptions(R"({"image_prefixes":["/a","/b"]})", {}, nullptr);
  ASSERT_TRUE(options);
  EXPECT_THAT(options->image_prefixes, testing::ElementsAre("/a", "/b"));
  for (const char* wrong :
       {R"({"image_prefixes":"/a"})", R"({"image_prefixes":["a"]})", R"({"image_prefixes":[7]})"}) {
    const auto refused = ParseOptions(wrong, {}, nullptr);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("'image_prefixes'"));
  }
}

}  // namespace
}  // namespace gantry::gvisor
