// SPDX-License-Identifier: Apache-2.0
//
// Volumes of a machine's containers: the host's bytes, both ways, and what is refused by name.
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class VmmVolume : public VmmTest {
 protected:
  void SetUp() override {
    VmmTest::SetUp();
    if (!IsSkipped()) {
      folder_ = settings().root + "/" + Id("-volume");
      fs::create_directories(folder_);
    }
  }

  void TearDown() override {
    VmmTest::TearDown();
    if (!folder_.empty()) {
      umount2(folder_.c_str(), MNT_DETACH);
      fs::remove_all(folder_);
    }
  }

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST_F(VmmVolume, OfADirectoryIsTheHosts) {
  WriteText(folder() + "/from-host", "host's");
  const Output output = RunScript("cat /data/from-host && echo guest >/data/from-guest",
                                  Bound(folder(), "/data", "rbind:rw"));
  EXPECT_EQ(output.out, "host's") << output.Text();
  EXPECT_EQ(ReadText(folder() + "/from-guest"), "guest\n");
}

TEST_F(VmmVolume, OfAFileIsThatFile) {
  WriteText(folder() + "/file", "one file");
  const Output output =
      RunScript("cat /etc/one", Bound(folder() + "/file", "/etc/one", "rbind:ro"));
  EXPECT_EQ(output.out, "one file") << output.Text();
}

TEST_F(VmmVolume, ForReadingIsNotWritten) {
  WriteText(folder() + "/kept", "kept");
  const Output output =
      RunScript("echo x >/data/kept; echo x >/data/new", Bound(folder(), "/data", "rbind:ro"));
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("Read-only"));
  EXPECT_EQ(ReadText(folder() + "/kept"), "kept");
  EXPECT_FALSE(fs::exists(folder() + "/new"));
}

// U7: a Secret or a ConfigMap as the kubelet has it: on a tmpfs, by a link that is renamed.
TEST_F(VmmVolume, OnATmpfsIsUpdatedByRename) {
  ASSERT_EQ(mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=1m"), 0);
  const auto publish = [&](const std::string& version) {
    fs::create_directory(folder() + "/" + version);
    WriteText(folder() + "/" + version + "/key", version);
    fs::create_symlink(version, folder() + "/..new");
    fs::rename(folder() + "/..new", folder() + "/..data");
  };
  publish("one");
  fs::create_symlink("..data/key", folder() + "/key");
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"}, Bound(folder(), "/secret", "rbind:ro"));
  EXPECT_EQ(Exec(id, {"cat", "/secret/key"}).out, "one");
  publish("two");
  EXPECT_TRUE(Eventually([&] { return Exec(id, {"cat", "/secret/key"}).out == "two"; }));
  Remove(id);
}

TEST_F(VmmVolume, OfASocketIsRefusedByName) {
  const auto listener = ListenUnix(folder() + "/socket");
  ASSERT_TRUE(listener) << listener.error().message;
  const Output output = RunScript("true", Bound(folder() + "/socket", "/run/socket", "rbind:rw"));
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("socket"));
}

TEST_F(VmmVolume, ThatIsNotThereIsNamed) {
  const Output output = RunScript("true", Bound(folder() + "/nowhere", "/data", "rbind:rw"));
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("nowhere"));
}

TEST_F(VmmVolume, InMemoryIsTheContainersOwn) {
  const Output output = RunScript("df -k /cache | tail -1; echo x >/cache/x && cat /cache/x",
                                  {"--mount", "type=tmpfs,src=tmpfs,dst=/cache,options=size=1m"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_THAT(output.out, HasSubstr("1024"));
  EXPECT_THAT(output.out, HasSubstr("\nx\n"));
}

TEST_F(VmmVolume, OfTheRootIsEachContainersOwn) {
  EXPECT_EQ(RunScript("echo mine >/bin/mine && cat /bin/mine").out, "mine\n");
  EXPECT_NE(RunScript("cat /bin/mine").status, 0);
}

}  // namespace
}  // namespace gantry::e2e
