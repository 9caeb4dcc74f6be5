// SPDX-License-Identifier: Apache-2.0
//
// Volumes of pods that the sentry has itself, in place of the host: those whose annotations say
// that nobody else looks into them.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/cri_pod.h"
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kHints = "dev.gvisor.spec.mount.";

void KillEngine(const Node& node) {
  const pid_t engine = node.Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
}

/// With a directory as the kubelet makes one for an emptyDir.
class GvisorVolume : public CriPodTest {
 protected:
  void SetUp() override {
    if (!settings().gvisor()) {
      GTEST_SKIP() << "is about the gvisor backend";
    }
    CriPodTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    config_ = Pod();
    // The directory is one for the whole machine.
    config_.uid = settings().ns + "-" + config_.name;
    pods_ = "/var/lib/kubelet/pods/" + config_.uid;
    volume_ = pods_ + "/volumes/kubernetes.io~empty-dir/shared";
    fs::create_directories(volume_);
    // As of a pod with an fsGroup.
    EXPECT_EQ(chown(volume_.c_str(), 0, 1234), 0);
    EXPECT_EQ(chmod(volume_.c_str(), 02777), 0);
  }

  void TearDown() override {
    CriPodTest::TearDown();
    fs::remove_all(pods_);
    std::error_code others_have_some;
    for (const char* path : {"/var/lib/kubelet/pods", "/var/lib/kubelet"}) {
      fs::remove(path, others_have_some);
    }
  }

  void Hint(const std::string& field, const std::string& value) {
    config_.annotations[kHints + ("shared." + field)] = value;
  }

  /// Sleeps, with the volume at /data.
  std::string RunWithVolume(const std::string& name) {
    ContainerConfig container;
    container.name = name;
    container.command = {"sleep", "1000"};
    cri::Mount& mount = container.mounts.emplace_back();
    mount.set_container_path("/data");
    mount.set_host_path(volume_);
    return RunContainerIn(pod_, config_, container);
  }

  void RunPodWith(const std::string& type, const std::string& share) {
    Hint("type", type);
    Hint("share", share);
    pod_ = RunPod(config_);
  }

  void Put(const std::string& id, const std::string& text) {
    EXPECT_EQ(Exec(id, {"sh", "-c", "echo " + text + " > /data/note"}).exit_code, 0);
  }

  std::string Get(const std::string& id) { return Exec(id, {"cat", "/data/note"}).out; }

  std::string TypeAt(const std::string& id, const std::string& path) {
    const std::string line = "$2 == \"" + path + "\" { print $3 }";
    return Exec(id, {"awk", line, "/proc/mounts"}).out;
  }

  /// Two containers, of which the second is given by `second` what the first has written.
  void ExpectIsOneForBoth() {
    const std::string first = RunWithVolume("first");
    Put(first, "one");
    const std::string second = RunWithVolume("second");
    EXPECT_EQ(Get(second), "one\n");
    Put(second, "two");
    EXPECT_EQ(Get(first), "two\n");
    EXPECT_EQ(TypeAt(first, "/data"), "tmpfs\n");
    EXPECT_EQ(TypeAt(second, "/data"), "tmpfs\n");
    EXPECT_EQ(Exec(first, {"stat", "-c", "%a %u %g", "/data"}).out, "2777 0 1234\n");
  }

  PodConfig config_;
  std::string pods_;
  std::string volume_;
  std::string pod_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, GvisorVolume, kSandboxers, SandboxerName);

TEST_P(GvisorVolume, InMemoryIsOneForAllContainers) {
  RunPodWith("tmpfs", "pod");
  ExpectIsOneForBoth();
  EXPECT_THAT(ListFolder(volume_), IsEmpty());
}

TEST_P(GvisorVolume, OnDiskIsOneForAllContainers) {
  RunPodWith("bind", "pod");
  ExpectIsOneForBoth();
  EXPECT_THAT(ListFolder(volume_), ElementsAre(StartsWith(".gvisor.filestore.")));
  RemovePods();
  EXPECT_THAT(ListFolder(volume_), IsEmpty());
}

TEST_P(GvisorVolume, StaysWhenItsContainerGoes) {
  RunPodWith("bind", "container");
  const std::string first = RunWithVolume("first");
  Put(first, "kept");
  ASSERT_TRUE(cri().Stop(first, std::chrono::seconds(0)));
  ASSERT_TRUE(cri().Remove(first));
  EXPECT_EQ(Get(RunWithVolume("next")), "kept\n");
}

TEST_P(GvisorVolume, IsTheSameInTheNextEngine) {
  RunPodWith("bind", "pod");
  const std::string first = RunWithVolume("first");
  Put(first, "before");
  KillEngine(node());
  EXPECT_EQ(Get(RunWithVolume("second")), "before\n");
  KillEngine(node());
  RemovePods();
  EXPECT_THAT(ListFolder(volume_), IsEmpty());
}

TEST_P(GvisorVolume, IsTheHostsWhereSomethingIsInIt) {
  WriteText(volume_ + "/note", "hosts\n");
  RunPodWith("tmpfs", "pod");
  const std::string id = RunWithVolume("one");
  EXPECT_EQ(Get(id), "hosts\n");
  Put(id, "containers");
  EXPECT_EQ(ReadText(volume_ + "/note"), "containers\n");
  EXPECT_THAT(TypeAt(id, "/data"), testing::Not("tmpfs\n"));
}

TEST_P(GvisorVolume, IsTheHostsWhereThatIsForced) {
  config_.annotations["dev.gvisor.empty-dir.shared.force-shared"] = "true";
  RunPodWith("bind", "pod");
  const std::string id = RunWithVolume("one");
  Put(id, "containers");
  EXPECT_EQ(ReadText(volume_ + "/note"), "containers\n");
  WriteText(volume_ + "/note", "hosts\n");
  EXPECT_EQ(Get(id), "hosts\n");
}

TEST_P(GvisorVolume, ThatIsMalformedIsRefused) {
  Hint("type", "ext4");
  Hint("share", "pod");
  const auto refused = cri().RunPod(config_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("'dev.gvisor.spec.mount.shared.type': 'ext4': must be bind or tmpfs"));
}

TEST_P(GvisorVolume, ThatIsNowhereIsRefused) {
  fs::remove(volume_);
  Hint("type", "tmpfs");
  Hint("share", "pod");
  const auto refused = cri().RunPod(config_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("0 directories '" + pods_ + "/volumes/*/shared'"));
}

TEST_P(GvisorVolume, OfSharedMemoryIsTheSentrysOfAPauseContainer) {
  pod_ = RunPod(config_);
  const std::string first = RunWithVolume("first");
  const std::string second = RunWithVolume("second");
  EXPECT_EQ(TypeAt(first, "/dev/shm") == "tmpfs\n", is_podsandbox());
  EXPECT_EQ(Exec(first, {"sh", "-c", "echo seen > /dev/shm/note"}).exit_code, 0);
  EXPECT_EQ(Exec(second, {"cat", "/dev/shm/note"}).out, "seen\n");
  // A pod of a controller's has its bundle in a directory of gantry's.
  const std::string bundles =
      is_controller() ? settings().run_dir + "-sandboxes" : settings().root + "/state";
  EXPECT_EQ(FindNames(bundles, "note").empty(), is_podsandbox());
}

/// Of a client that knows paths.
class GvisorGivenVolume : public GvisorTest {
 protected:
  std::string Directory() {
    const std::string path = settings().root + "/" + Id("-volume");
    fs::create_directory(path);
    return path;
  }

  static Words Flags(const std::string& directory, const std::string& type) {
    const std::string hint = std::string(kHints) + "given.";
    return {"--annotation", hint + "type=" + type,
            "--annotation", hint + "share=container",
            "--annotation", hint + "source=" + directory,
            "--mount",      "type=bind,src=" + directory + ",dst=/data,options=rbind:rw"};
  }
};

TEST_F(GvisorGivenVolume, IsTheSentrysAndLeavesNothing) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartDetached(id, {"sleep", "1000"}, Flags(directory, "tmpfs"));
  EXPECT_EQ(Exec(id, {"sh", "-c", "echo text > /data/note"}).status, 0);
  EXPECT_EQ(Exec(id, {"cat", "/data/note"}).out, "text\n");
  EXPECT_THAT(Exec(id, {"grep", " /data ", "/proc/mounts"}).out, HasSubstr(" tmpfs "));
  EXPECT_THAT(ListFolder(directory), ElementsAre(".gvisor.filestore." + id));
  Remove(id);
  EXPECT_THAT(ListFolder(directory), IsEmpty());
}

TEST_F(GvisorGivenVolume, OfTypeBindIsTheHosts) {
  const std::string id = Id();
  const std::string directory = Directory();
  StartDetached(id, {"sleep", "1000"}, Flags(directory, "bind"));
  EXPECT_EQ(Exec(id, {"sh", "-c", "echo text > /data/note"}).status, 0);
  EXPECT_EQ(ReadText(directory + "/note"), "text\n");
  Remove(id);
  EXPECT_THAT(ListFolder(directory), ElementsAre("note"));
}

TEST_F(GvisorGivenVolume, OfACreationThatWasCutShortLeavesNothing) {
  const std::string id = Id();
  const std::string directory = Directory();
  Words words = RunWords(Flags(directory, "tmpfs"), id, {"sleep", "1000"});
  words.insert(words.begin() + 1, "-d");
  Program run = StartCtr(node(), words, {});
  EXPECT_TRUE(Eventually([&] { return !ListFolder(directory).empty(); }));
  KillEngine(node());
  EXPECT_EQ(run.Wait(), 0) << "it is asked again: " << run.err();
  EXPECT_EQ(Exec(id, {"ls", "/data"}).out, "");
  Remove(id);
  EXPECT_THAT(ListFolder(directory), IsEmpty());
}

}  // namespace
}  // namespace gantry::e2e
