// SPDX-License-Identifier: Apache-2.0
//
// A root file system with what is no plain file, and a device that no sentry has: each is served or
// refused, at once, and the container starts and ends.
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class GvisorOddFiles : public GvisorTest {
 protected:
  void SetUp() override {
    GvisorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    folder_ = settings().root + "/" + Id("-files");
    fs::create_directories(rootfs());
    const Output made = RunProgram({"sh", "-c",
                                    "cd " + rootfs() +
                                        " && mkdir bin dev proc run sys && cp $(command -v "
                                        "busybox) bin && for one in sh cat ls; do ln -s busybox "
                                        "bin/$one; done"});
    ASSERT_EQ(made.status, 0) << made.Text();
  }

  void TearDown() override {
    if (!folder_.empty()) {
      fs::remove_all(folder_);
    }
    GvisorTest::TearDown();
  }

  std::string rootfs() const { return folder_ + "/rootfs"; }

  /// The words of `ctr run` of a spec of containerd's with that root, and these devices.
  Words Command(const std::string& id, const Words& flags, const std::string& script,
                const Json& devices) {
    Json spec = Json::parse(Ctr({"oci", "spec"}).out);
    spec["root"]["path"] = rootfs();
    spec["process"]["env"] = {"PATH=/bin"};
    spec["process"]["args"] = {"sh", "-c", script};
    spec["linux"]["cgroupsPath"] = "/" + settings().ns + "/" + id;
    spec["linux"]["devices"] = devices;
    const std::string path = folder_ + "/" + id + ".json";
    WriteText(path, spec.dump());
    Words words{
        "run",      "--rm", "--runtime", settings().runtime, "--fifo-dir", node().fifo_dir(),
        "--config", path};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(id);
    return words;
  }

  Output Run(const std::string& id, const Words& flags, const std::string& script,
             const Json& devices = Json::array()) {
    return Ctr(Command(id, flags, script, devices));
  }

 private:
  std::string folder_;
};

/// With whatever writable layer.
TEST_F(GvisorOddFiles, AFifoOfTheImageIsRefused) {
  ASSERT_EQ(mkfifo((rootfs() + "/f").c_str(), 0666), 0);
  const std::string script = "cat /f & echo hi >/f; wait; echo over";
  for (const auto& [name, toml] : {std::pair("-own", "[runsc_config]\noverlay2 = \"root:self\"\n"),
                                   std::pair("-none", "[runsc_config]\noverlay2 = \"none\"\n")}) {
    const Output refused = Run(Id(name), WithOptions(toml), script);
    EXPECT_EQ(refused.out, "over\n") << refused.Text();
    EXPECT_THAT(refused.err, HasSubstr("can't open '/f': Operation not permitted"));
    EXPECT_THAT(refused.err, HasSubstr("can't create /f: Operation not permitted"));
  }
}

TEST_F(GvisorOddFiles, AFifoOfTheImageHasItsOtherEndOnTheNode) {
  const std::string fifo = rootfs() + "/f";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  const Words flags = WithOptions("[runsc_config]\nhost-fifo = \"open\"\n");
  Program container =
      StartCtr(node(), Command(Id(), flags, "echo up; cat /f; echo over", Json::array()), {});
  ASSERT_TRUE(container.ReadUntil("up\n")) << container.err();
  // A sentry opens it twice, the second time as one that waits for a writer: it has to be there.
  Program::Options options;
  options.input = true;
  Program writer({"sh", "-c", "exec >" + fifo + "; echo hi; read -r over"}, options);
  ASSERT_TRUE(container.ReadUntil("hi\n")) << container.err() << writer.err();
  writer.Write("over\n");
  EXPECT_EQ(writer.Wait(), 0) << writer.err();
  EXPECT_EQ(container.Wait(), 0) << container.err();
  EXPECT_EQ(container.out(), "up\nhi\nover\n");
}

/// It is there, and says so; alone and in a pod.
TEST_F(GvisorOddFiles, ADeviceThatSentriesDoNotHaveCannotBeOpened) {
  const Json video = {{{"path", "/dev/video1"},
                       {"type", "c"},
                       {"major", 81},
                       {"minor", 1},
                       {"fileMode", 0660},
                       {"uid", 0},
                       {"gid", 0}}};
  const std::string root = Id("-root");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  for (const Words& flags : {Words(), AsFurther(root)}) {
    const Output ran = Run(Id(flags.empty() ? "-alone" : "-further"), flags,
                           "ls -l /dev/video1; cat /dev/video1; echo over", video);
    EXPECT_THAT(ran.out, StartsWith("crw-rw----")) << ran.Text();
    EXPECT_THAT(ran.out, EndsWith("/dev/video1\nover\n")) << ran.Text();
    EXPECT_THAT(ran.err, HasSubstr("can't open '/dev/video1': No such device or address"));
  }
  Remove(root);
}

}  // namespace
}  // namespace gantry::e2e
