// SPDX-License-Identifier: Apache-2.0
//
// What the containers of a pod without a pause container share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/files.h>
#include <gantry/pod_files.h>

namespace gantry {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Slurp(const std::string& path) { return ReadFile(path, 1 << 20).value_or("(none)"); }

class PodFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "pod-files-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    bundle_ = folder;
  }

  void TearDown() override { EXPECT_TRUE(RemoveTree(bundle_)); }

  std::string bundle_;
};

TEST_F(PodFiles, AreMadeOfTheConfiguration) {
  PodConfig config;
  config.hostname = "web";
  config.ipc = NamespaceMode::kNode;  // No mount.
  config.dns.servers = {"10.0.0.10", "10.0.0.11"};
  config.dns.searches = {"a.svc", "svc"};
  config.dns.options = {"ndots:5"};
  ASSERT_TRUE(MakePodFiles(bundle_, config));
  EXPECT_EQ(Slurp(bundle_ + "/hostname"), "web\n");
  EXPECT_EQ(Slurp(bundle_ + "/hosts"), Slurp("/etc/hosts"));
  EXPECT_EQ(Slurp(bundle_ + "/resolv.conf"),
            "search a.svc svc\nnameserver 10.0.0.10\nnameserver 10.0.0.11\noptions ndots:5\n");
  ASSERT_TRUE(MakePodFiles(bundle_, config)) << "again";
  ASSERT_TRUE(RemovePodFiles(bundle_));
  EXPECT_FALSE(Exists(bundle_ + "/hosts"));
  EXPECT_TRUE(RemovePodFiles(bundle_)) << "again";
}

TEST_F(PodFiles, WithoutDnsTheNodesIsTaken) {
  PodConfig config;
  config.ipc = NamespaceMode::kNode;
  ASSERT_TRUE(MakePodFiles(bundle_, config));
  EXPECT_EQ(Slurp(bundle_ + "/resolv.conf"), Slurp("/etc/resolv.conf"));
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
  EXPECT_THAT(Targets(*changed),
              ElementsAre("/b/shm /dev/shm", "/kubelet/hosts /etc/hosts",
                          "/b/hostname /etc/hostname", "/b/resolv.conf /etc/resolv.conf"));
  EXPECT_THAT(*changed, HasSubstr("18446744073709551615")) << "nothing else is touched";
  EXPECT_EQ(*WithPodFiles(*changed, InB(), PodConfig()), *changed) << "again";
}

TEST_F(PodFiles, TakeThePlaceOfContainerdsEmptyDirectories) {
  const std::string spec =
      R"({"mounts":[{"destination":"/etc/hosts","type":"bind","source":"/c/sandboxes/p1/hosts"},)"
      R"({"destination":"/dev/shm","type":"bind","source":"/c/sandboxes/p1/shm"},)"
      R"({"destination":"/etc/hostname","type":"bind","source":"/c/sandboxes/p2/hostname"}]})";
  EXPECT_THAT(
      Targets(*WithPodFiles(spec, InB(), PodConfig())),
      ElementsAre("/b/hosts /etc/hosts", "/b/shm /dev/shm",
                  "/c/sandboxes/p2/hostname /etc/hostname", "/b/resolv.conf /etc/resolv.conf"));
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
