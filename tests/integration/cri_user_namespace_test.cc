// SPDX-License-Identifier: Apache-2.0
//
// Pods with a user namespace: root in them is nobody on the node.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/id_map.h>

#include "tests/harness/cri_pod.h"
#include "tests/harness/user_namespace.h"

namespace gantry::e2e {
namespace {

uid_t OwnerOf(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? status.st_uid : static_cast<uid_t>(-1);
}

class CriUserNamespace : public CriPodTest {
 protected:
  void SetUp() override {
    CriPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    if (const std::string why = WhyNoUserNamespace(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }

  std::string WhyNoMappedMounts() { return e2e::WhyNoMappedMounts(settings().oci); }

  PodConfig Config() {
    PodConfig config = Pod();
    config.hostname = "mapped";
    config.user_namespace = Mapping();
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriUserNamespace, kSandboxers, SandboxerName);

TEST_P(CriUserNamespace, MapsRoot) {
  if (settings().release1() && !is_podsandbox()) {
    GTEST_SKIP() << "containerd 1.7 makes the network namespace outside of the user namespace";
  }
  if (settings().release1() && settings().newer_cri) {
    GTEST_SKIP() << "the newer CRI server of containerd 1.7 makes the pause container without one";
  }
  if (settings().release1() && settings().oci == "runc") {
    GTEST_SKIP() << "runc 1.1 refuses what containerd 1.7 asks for: 'both namespace path and "
                    "non-matching mapping specified'";
  }
  if (const std::string why = WhyNoMappedMounts();
      is_podsandbox() && !settings().release1() && !why.empty()) {
    GTEST_SKIP() << why;
  }
  const PodConfig config = Config();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  const std::string second = RunContainerIn(pod, config, "two", {"sleep", "1000"});
  EXPECT_EQ(MapOf(PidOf(id)), "0 200000 65536");
  EXPECT_EQ(OwnerOf("/proc/" + std::to_string(PidOf(id))), kFirstId);
  EXPECT_EQ(Exec(id, {"id", "-u"}).out, "0\n");
  EXPECT_EQ(Exec(id, {"readlink", "/proc/self/ns/user"}).out,
            Exec(second, {"readlink", "/proc/self/ns/user"}).out);
  EXPECT_EQ(Exec(id, {"hostname"}).out, "mapped\n");
  EXPECT_EQ(Exec(id, {"sh", "-c", "echo seen > /dev/shm/note && echo made > /file"}).exit_code, 0)
      << "its root file system and shared memory are its own";
  EXPECT_EQ(Exec(second, {"cat", "/dev/shm/note"}).out, "seen\n");
  // Before containerd 2.0 those that it makes are the host's root's.
  if (!settings().release1() || std::string_view(GetParam()) == "shim") {
    EXPECT_EQ(Exec(id, {"sh", "-c", "echo '10.0.0.9 db' >> /etc/hosts"}).exit_code, 0)
        << "the pod's files are";
  }
}

TEST_P(CriUserNamespace, MapsAVolume) {
  if (settings().release1()) {
    GTEST_SKIP() << "containerd 1.7: idmap mounts not yet supported";
  }
  if (const std::string why = WhyNoMappedMounts(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::string volume = settings().root + "/volume-" + Id();
  std::filesystem::create_directories(volume);
  WriteText(volume + "/there", "there\n");
  if (const auto space = mount::NewUserNamespace(IdMap(), IdMap())) {
    const auto clone = mount::CloneTree(AT_FDCWD, volume, false);
    ASSERT_TRUE(clone) << clone.error().message;
    if (const auto mapped = mount::MapIds(clone->get(), space->get(), false); !mapped) {
      GTEST_SKIP() << "the kernel: " << mapped.error().message;
    }
  }
  const PodConfig config = Config();
  const std::string pod = RunPod(config);
  ContainerConfig container;
  container.name = "one";
  container.command = {"sleep", "1000"};
  cri::Mount& mount = container.mounts.emplace_back();
  mount.set_container_path("/volume");
  mount.set_host_path(volume);
  *mount.add_uidmappings() = Mapping();
  *mount.add_gidmappings() = Mapping();
  const auto id = cri().Create(pod, config, container);
  ASSERT_TRUE(id) << id.error().message;
  const Status started = cri().Start(*id);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(Exec(*id, {"stat", "-c", "%u", "/volume/there"}).out, "0\n");
  EXPECT_EQ(Exec(*id, {"sh", "-c", "echo made > /volume/made"}).exit_code, 0);
  EXPECT_EQ(OwnerOf(volume + "/made"), 0U) << "on the node its owner is not mapped";
  std::filesystem::remove_all(volume);
}

}  // namespace
}  // namespace gantry::e2e
