// SPDX-License-Identifier: Apache-2.0
//
// The files of a saved sandbox.
#include "plugins/gvisor/checkpoint/image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using testing::Ne;

/// As a sentry begins the first file.
std::string StateOf(const std::string& table) {
  std::string text = "gVisorSF" + std::string(7, '\0');
  text.push_back(static_cast<char>(table.size()));
  return text + table + "what is behind it";
}

class ImageTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  Status Write(const std::string& name, const std::string& text) const {
    return WriteFile(Path(name), text, 0600);
  }

  Result<ImageInfo> InfoOf(const std::string& state) const {
    for (const char* name : kImageFiles) {
      GANTRY_CHECK_OK(Write(name, name == kImageFiles[kStateFile] ? state : ""));
    }
    GANTRY_TRY(const Image image, OpenImage(folder_.path()));
    return ReadImageInfo(image);
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

TEST_F(ImageTest, IsNewAndForItsOwnerAlone) {
  ASSERT_TRUE(Write("pages.img", "of one before"));
  const auto image = MakeImage(folder_.path());
  ASSERT_TRUE(image) << image.error().message;
  for (const UniqueFd& file : image->files) {
    struct stat status{};
    ASSERT_EQ(fstat(file.get(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600U);
    EXPECT_EQ(status.st_size, 0);
  }
  ASSERT_TRUE(RemoveImage(folder_.path()));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_TRUE(RemoveImage(folder_.path()));
}

TEST_F(ImageTest, ThatCannotBeMadeLeavesNothing) {
  ASSERT_TRUE(std::filesystem::create_directories(Path("pages.img") + "/in it"));
  EXPECT_FALSE(MakeImage(folder_.path()));
  EXPECT_FALSE(Exists(Path("checkpoint.img")));
  EXPECT_EQ(MakeImage(Path("none")).error().code, Code::kNotFound);
}

TEST_F(ImageTest, NamesWhatIsMissing) {
  const auto none = OpenImage(Path("none"));
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr(Path("none")));
  ASSERT_TRUE(Write("checkpoint.img", ""));
  const auto part = OpenImage(folder_.path());
  EXPECT_EQ(part.error().code, Code::kNotFound);
  EXPECT_THAT(part.error().message, HasSubstr(Path("pages_meta.img")));
  EXPECT_EQ(OpenImage(Path("checkpoint.img")).error().code, Code::kInvalidArgument);
}

TEST_F(ImageTest, OfCriusIsNone) {
  ASSERT_TRUE(Write("inventory.img", ""));
  const auto image = OpenImage(folder_.path());
  EXPECT_EQ(image.error().code, Code::kInvalidArgument);
  EXPECT_THAT(image.error().message, HasSubstr("criu"));
}

TEST_F(ImageTest, IsOfFilesOnly) {
  ASSERT_EQ(mkfifo(Path("checkpoint.img").c_str(), 0600), 0);
  EXPECT_EQ(OpenImage(folder_.path()).error().code, Code::kInvalidArgument);
}

TEST_F(ImageTest, TellsWhatIsInIt) {
  const auto info = InfoOf(StateOf(R"({"container_count":"2","gantry.build":"b"})"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->containers, 2);
  EXPECT_EQ(info->build, "b");
  EXPECT_EQ(InfoOf(StateOf("{}"))->containers, 0);
  EXPECT_EQ(InfoOf(StateOf("{}"))->build, "");
}

TEST_F(ImageTest, ThatIsDamagedIsRefused) {
  for (const std::string& state :
       {std::string(), std::string("gVisorSF"), std::string("no state at all, but long enough"),
        "gVisorSF" + std::string(8, '\xff'), StateOf("[]"), StateOf("{\"container_count\"")}) {
    EXPECT_EQ(InfoOf(state).error().code, Code::kInvalidArgument) << state;
  }
}

TEST_F(ImageTest, KnowsABuildByItsFileWhereverItIs) {
  const auto build = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(Write(name, text));
    return *BuildOf(UniqueFd(open(Path(name).c_str(), O_PATH | O_CLOEXEC)));
  };
  const std::string one = build("one", "ELF 1");
  EXPECT_EQ(build("copy", "ELF 1"), one);
  EXPECT_THAT(build("other", "ELF 2"), Ne(one));
  EXPECT_THAT(build("longer", "ELF 1 "), Ne(one));
}

}  // namespace
}  // namespace gantry::gvisor
