// SPDX-License-Identifier: Apache-2.0
//
// Files of a root in which a tenant has put whatever he likes.
#include "plugins/wasm/module/image_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/wasm/module/sha256.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kMost = 1 << 20;

class ImageFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gantry-image-file-XXXXXX";
    folder_ = mkdtemp(name);
    fs::create_directories(folder_ + "/root/dir");
    ASSERT_TRUE(WriteFile(folder_ + "/secret.wasm", SmallModule(), 0644));
    Write("app.wasm", SmallModule());
    root_ = UniqueFd(open((folder_ + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFile(Path(name), text, 0644));
  }

  std::string Path(const std::string& name) const { return folder_ + "/root/" + name; }

  Result<ImageFile> Open(const std::string& path) const {
    return OpenImageFile(root_.get(), path, path);
  }

  std::string folder_;
  UniqueFd root_;
};

TEST_F(ImageFileTest, IsReadAndHashed) {
  const auto file = Open("/app.wasm");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->head, SmallModule());
  const auto module = ReadModule(*file, kMost, "/app.wasm");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->size, SmallModule().size());
  EXPECT_EQ(module->digest, Sha256Of(SmallModule()));
  const int seals = fcntl(module->file.get(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK),
            F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
  const auto shape = CheckModule(*module, "/app.wasm");
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->functions, 1U);
}

TEST_F(ImageFileTest, IsReadInManyPieces) {
  const std::string big = CoreHeader() + SectionOf(0, "\4name" + std::string(700'001, 'x'));
  Write("big.wasm", big);
  const auto module = ReadModule(Open("big.wasm").value(), kMost, "big.wasm");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->digest, Sha256Of(big));
}

TEST_F(ImageFileTest, NamesWhatIsNoRegularFileWithoutOpeningIt) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mknod(Path("device").c_str(), S_IFCHR | 0600, makedev(1, 5)), 0) << "needs root";
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);

  struct Named {
    const char* name;
    const char* what;
  };

  for (const Named& one : {Named{"dir", "a directory"}, Named{"fifo", "a FIFO"},
                           Named{"device", "a device"}, Named{"socket", "a socket"}}) {
    const auto file = Open(one.name);
    ASSERT_FALSE(file) << one.name;
    EXPECT_EQ(file.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(file.error().message, HasSubstr(one.name));
    EXPECT_THAT(file.error().message, HasSubstr(one.what));
  }
}

TEST_F(ImageFileTest, LinksLeadNowhereOutOfTheRoot) {
  fs::create_symlink(folder_ + "/secret.wasm", Path("absolute"));
  fs::create_symlink("../../../../../.." + folder_ + "/secret.wasm", Path("dir/relative"));
  fs::create_symlink("../secret.wasm", Path("up"));
  fs::create_symlink("/app.wasm", Path("inside"));
  EXPECT_EQ(Open("absolute").error().code, Code::kNotFound);
  EXPECT_EQ(Open("dir/relative").error().code, Code::kNotFound);
  EXPECT_EQ(Open("up").error().code, Code::kNotFound);
  EXPECT_EQ(Open("../secret.wasm").error().code, Code::kNotFound);
  EXPECT_TRUE(Open("inside")) << "as in the container";
  fs::create_symlink("loop", Path("loop"));
  EXPECT_EQ(Open("loop").error().code, Code::kFailedPrecondition);
}

TEST_F(ImageFileTest, NamesWhatIsNotThere) {
  const auto file = Open("/no/such.wasm");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr("/no/such.wasm"));
}

TEST_F(ImageFileTest, HasNoMoreBytesThanAllowed) {
  const size_t size = SmallModule().size();
  EXPECT_TRUE(ReadModule(Open("app.wasm").value(), size, "app.wasm"));
  const auto over = ReadModule(Open("app.wasm").value(), size - 1, "app.wasm");
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(over.error().message, HasSubstr("max_module_bytes"));
}

TEST_F(ImageFileTest, MayNotChangeWhileItIsRead) {
  const auto file = Open("app.wasm");
  ASSERT_TRUE(file);
  Write("app.wasm", SmallModule() + SectionOf(0, "\4name"));
  EXPECT_THAT(ReadModule(*file, kMost, "app.wasm").error().message, HasSubstr("changes"));
  Write("app.wasm", "");
  EXPECT_THAT(ReadModule(*file, kMost, "app.wasm").error().message, HasSubstr("changes"));
}

TEST_F(ImageFileTest, AHugeFileOfZerosIsToldByItsHead) {
  Write("zeros", "");
  ASSERT_EQ(truncate(Path("zeros").c_str(), off_t{1} << 30), 0);
  const auto file = Open("zeros");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size, uint64_t{1} << 30);
  EXPECT_EQ(file->head, std::string(512, '\0'));
}

TEST_F(ImageFileTest, ABadModuleIsNamed) {
  Write("bad.wasm", CoreHeader() + SectionOf(1, OversizedLeb()));
  const auto module = ReadModule(Open("bad.wasm").value(), kMost, "bad.wasm");
  ASSERT_TRUE(module);
  const auto shape = CheckModule(*module, "/bad.wasm");
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, Code::kInvalidArgument);
  EXPECT_EQ(
      shape.error().message,
      "'/bad.wasm': section 'type' at offset 8: its count takes more than 5 bytes or 32 bits");
}

}  // namespace
}  // namespace gantry::wasm
