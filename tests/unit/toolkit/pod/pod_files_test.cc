// SPDX-License-Identifier: Apache-2.0
//
// What the containers of a pod without a pause container share.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pod/pod_files.h>

namespace gantry {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Slurp(const std::string& path) { return ReadFile(path, 1 << 20).value_or("(none)"); }

// The mounts of these tests are in a mount namespace of the test process.
bool EnterMountNamespace() {
  return unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_PRIVATE | MS_REC, nullptr) == 0;
}

class PodFiles : public testing::Test {
 protected:
  void SetUp() override {
    can_mount_ = geteuid() == 0 && EnterMountNamespace();
    std::string folder = testing::TempDir() + "pod-files-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    bundle_ = folder;
  }

  void TearDown() override {
    EXPECT_TRUE(RemovePodFiles(bundle_));
    EXPECT_TRUE(RemoveTree(bundle_));
  }

  std::string bundle_;
  bool can_mount_ = false;
};

/// Those that are made, which takes a mount.
class MadePodFiles : public PodFiles {
 protected:
  void SetUp() override {
    PodFiles::SetUp();
    if (!can_mount_) {
      GTEST_SKIP() << "needs root and a mount namespace";
    }
    config_.ipc = NamespaceMode::kNode;
  }

  PodConfig config_;
};

TEST_F(MadePodFiles, AreOfTheConfiguration) {
  config_.hostname = "web";
  config_.dns.servers = {"10.0.0.10", "10.0.0.11"};
  config_.dns.searches = {"a.svc", "svc"};
  config_.dns.options = {"ndots:5"};
  ASSERT_TRUE(MakePodFiles(bundle_, config_));
  EXPECT_EQ(Slurp(bundle_ + "/files/hostname"), "web\n");
  EXPECT_EQ(Slurp(bundle_ + "/files/hosts"), Slurp("/etc/hosts"));
  EXPECT_EQ(Slurp(bundle_ + "/files/resolv.conf"),
            "search a.svc svc\nnameserver 10.0.0.10\nnameserver 10.0.0.11\noptions ndots:5\n");
  ASSERT_TRUE(MakePodFiles(bundle_, config_)) << "again";
  ASSERT_TRUE(RemovePodFiles(bundle_));
  EXPECT_THAT(*ListDirectory(bundle_), IsEmpty());
  EXPECT_TRUE(RemovePodFiles(bundle_)) << "again";
}

TEST_F(MadePodFiles, AreMountedWhereIsSaidBefore) {
  config_.ipc = NamespaceMode::kPod;
  ASSERT_TRUE(MakePodFiles(bundle_, config_));
  std::istringstream mounts(Slurp("/proc/self/mountinfo"));
  std::vector<std::string> there;
  for (std::string line; std::getline(mounts, line);) {
    // The mount point is the fifth word of a line: proc_pid_mountinfo(5).
    std::istringstream words(line);
    std::vector<std::string> first(5);
    for (std::string& word : first) {
      words >> word;
    }
    if (first[4].starts_with(bundle_)) {
      there.push_back(first[4]);
    }
  }
  EXPECT_EQ(there, PodFileMounts(bundle_));
}

TEST_F(MadePodFiles, WithoutDnsAreTheNodes) {
  ASSERT_TRUE(MakePodFiles(bundle_, config_));
  EXPECT_EQ(Slurp(bundle_ + "/files/resolv.conf"), Slurp("/etc/resolv.conf"));
}

TEST_F(MadePodFiles, TakeNoMoreThanAMebibyteOfMemory) {
  ASSERT_TRUE(MakePodFiles(bundle_, config_));
  const std::string hosts = bundle_ + "/files/hosts";
  struct statvfs size = {};
  ASSERT_EQ(statvfs(hosts.c_str(), &size), 0);
  EXPECT_EQ(size.f_blocks * size.f_frsize, 1U << 20);
  const Status filled = WriteFile(hosts, std::string(2U << 20, 'x'), 0644);
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().sys_errno, ENOSPC);
}

TEST_F(MadePodFiles, AreThoseOfThePodsRoot) {
  config_.user = NamespaceMode::kPod;
  config_.uids = {{.host_id = 300000, .container_id = 1000, .length = 10},
                  {.host_id = 200000, .container_id = 0, .length = 1000}};
  config_.gids = {{.host_id = 200001, .container_id = 0, .length = 1000}};
  ASSERT_TRUE(MakePodFiles(bundle_, config_));
  for (const char* name : {"/files/hosts", "/files/hostname", "/files/resolv.conf"}) {
    struct stat status = {};
    ASSERT_EQ(stat((bundle_ + name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_uid, 200000U) << name;
    EXPECT_EQ(status.st_gid, 200001U) << name;
    EXPECT_EQ(status.st_mode & 07777U, 0644U) << name;
  }
}

std::vector<std::string> Targets(const std::string& spec) {
  std::vector<std::string> targets;
  const json parsed = json::parse(spec);
  for (const json& mount : parsed["mounts"]) {
    targets.push_back(mount["source"].get<std::string>() + " " +
                      mount["destination"].get<std::string>());
  }
  return targets;
}

SandboxRequest InB() {
  SandboxRequest request;
  request.id = *SandboxId::Parse("p1");
  request.kind = SandboxKind::kPauseless;
  request.bundle = "/b";
  return request;
}

TEST_F(PodFiles, ArePutIntoTheSpec) {
  const std::string spec =
      R"({"root":{"path":"rootfs"},"mounts":[)"
      R"({"destination":"/dev/shm","type":"tmpfs","source":"shm"},)"
      R"({"destination":"/etc/hosts","type":"bind","source":"/kubelet/hosts"}],)"
      R"("x":18446744073709551615})";
  const auto changed = WithPodFiles(spec, InB(), PodConfig());
  ASSERT_TRUE(changed);
  EXPECT_THAT(Targets(*changed), ElementsAre("/b/shm /dev/shm", "/kubelet/hosts /etc/hosts",
                                             "/b/files/hostname /etc/hostname",
                                             "/b/files/resolv.conf /etc/resolv.conf"));
  EXPECT_THAT(*changed, HasSubstr("18446744073709551615")) << "nothing else is touched";
  EXPECT_EQ(*WithPodFiles(*changed, InB(), PodConfig()), *changed) << "again";
}

TEST_F(PodFiles, TakeThePlaceOfContainerdsEmptyDirectories) {
  const std::string spec =
      R"({"mounts":[{"destination":"/etc/hosts","type":"bind","source":"/c/sandboxes/p1/hosts"},)"
      R"({"destination":"/dev/shm","type":"bind","source":"/c/sandboxes/p1/shm"},)"
      R"({"destination":"/etc/hostname","type":"bind","source":"/c/sandboxes/p2/hostname"}]})";
  EXPECT_THAT(Targets(*WithPodFiles(spec, InB(), PodConfig())),
              ElementsAre("/b/files/hosts /etc/hosts", "/b/shm /dev/shm",
                          "/c/sandboxes/p2/hostname /etc/hostname",
                          "/b/files/resolv.conf /etc/resolv.conf"));
}

TEST_F(PodFiles, OfAnOlderEngineStayWhereTheyAre) {
  ASSERT_TRUE(WriteFile(bundle_ + "/hosts", "old\n", 0644));
  SandboxRequest request = InB();
  request.bundle = bundle_;
  EXPECT_THAT(Targets(*WithPodFiles("{}", request, PodConfig())),
              ElementsAre(bundle_ + "/hostname /etc/hostname", bundle_ + "/hosts /etc/hosts",
                          bundle_ + "/resolv.conf /etc/resolv.conf", bundle_ + "/shm /dev/shm"));
  ASSERT_TRUE(RemovePodFiles(bundle_));
  EXPECT_THAT(*ListDirectory(bundle_), IsEmpty());
}

TEST_F(PodFiles, AreReadOnlyWhereTheRootIs) {
  const auto changed = WithPodFiles(R"({"root":{"readonly":true}})", InB(), PodConfig());
  ASSERT_TRUE(changed);
  EXPECT_THAT(json::parse(*changed)["mounts"][0]["options"], Contains("ro"));
}

TEST_F(PodFiles, TheNodesMemoryIsSharedOnTheNodesIpc) {
  PodConfig config;
  config.ipc = NamespaceMode::kNode;
  EXPECT_THAT(Targets(*WithPodFiles("{}", InB(), config)), Contains("/dev/shm /dev/shm"));
}

TEST_F(PodFiles, LeaveAloneWhatIsNoMount) {
  const auto changed = WithPodFiles(
      R"({"root":{"readonly":"yes"},"mounts":[7,{"destination":"/dev/shm","type":1,"source":2}]})",
      InB(), PodConfig());
  ASSERT_TRUE(changed) << changed.error().message;
  const json mounts = json::parse(*changed)["mounts"];
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[1]["source"], 2);
}

TEST_F(PodFiles, WantASpec) {
  EXPECT_EQ(WithPodFiles("[]", InB(), PodConfig()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(WithPodFiles("{", InB(), PodConfig()).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry
