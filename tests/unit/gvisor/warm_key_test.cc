// SPDX-License-Identifier: Apache-2.0
//
// Which pods may have a sentry that was booted before anybody knew of them.
#include "plugins/gvisor/warm/warm_key.h"

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

class WarmKeyTest : public testing::Test {
 protected:
  void SetUp() override {
    runsc_.runsc.path = "/usr/bin/runsc";
    runsc_.sentry.path = "/usr/bin/runsc";
    runsc_.identity = {1, 2, 3, 4};
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
  }

  WarmKey Key(const PauseSpecRequest& root = {}) const {
    return MakeWarmKey(runsc_, flags_, root, cgroups_);
  }

  std::string Difference(const PauseSpecRequest& pod) const {
    return std::string(DifferenceOf(warm_, Key(pod)));
  }

  void Limit(const std::string& file, const std::string& text) {
    cgroups_ = {dir_.path()};
    ASSERT_TRUE(WriteFile(dir_.path() + "/cgroup.procs", "", 0600));
    ASSERT_TRUE(WriteFile(dir_.path() + "/" + file, text + "\n", 0600));
  }

  os::TempDir dir_;
  Runsc runsc_;
  Flags flags_;
  std::vector<std::string> cgroups_;
  WarmKey warm_ = MakeWarmKey(Runsc(), {}, {}, {});
};

constexpr const char* kRoot = "the user namespace, network namespace, sysctls or annotations";
constexpr const char* kMachine = "the limits of memory or processors";

TEST_F(WarmKeyTest, IsTheSameForAnOrdinaryPod) {
  warm_ = Key();
  PauseSpecRequest pod;
  pod.root = "/run/bundle";
  pod.hostname = "web-0";
  pod.network = "/run/netns/cni-1";
  pod.annotations = {{"kubernetes.io/config.seen", "today"},
                     {"io.kubernetes.cri.sandbox-id", "0123"}};
  EXPECT_EQ(Difference(pod), "");
  EXPECT_EQ(Key(pod), warm_);
}

TEST_F(WarmKeyTest, IsAnotherOfAnotherBuild) {
  warm_ = Key();
  runsc_.identity.inode = 9;
  EXPECT_EQ(Difference({}), "the build of runsc");
  runsc_.identity.inode = 2;
  runsc_.sentry_identity.changed_ns = 5;
  EXPECT_EQ(Difference({}), "the build of runsc");
}

TEST_F(WarmKeyTest, IsAnotherWithOtherFlags) {
  warm_ = Key();
  flags_.all["strace"] = "true";
  EXPECT_EQ(Difference({}), "runsc's flags");
  flags_.all.clear();
  flags_.network = Network::kHost;
  EXPECT_EQ(Difference({}), "runsc's flags");
}

TEST_F(WarmKeyTest, IsAnotherWhereItsLogsAreElsewhere) {
  flags_.logs.debug = "/l/";
  warm_ = Key();
  EXPECT_EQ(Difference({}), "");
  flags_.logs.user = "/var/log/pods/one/gvisor.log";
  EXPECT_EQ(Difference({}), "");
  flags_.logs.debug = "/m/";
  EXPECT_EQ(Difference({}), "where its logs are");
}

TEST_F(WarmKeyTest, IsAnotherOfAPodWithAUserNamespace) {
  warm_ = Key();
  PauseSpecRequest pod;
  pod.uids = pod.gids = {{.host_id = 100000, .container_id = 0, .length = 65536}};
  EXPECT_EQ(Difference(pod), kRoot);
}

TEST_F(WarmKeyTest, IsAnotherOfAPodOnTheNodesNetwork) {
  warm_ = Key();
  PauseSpecRequest pod;
  pod.network.reset();
  EXPECT_EQ(Difference(pod), kRoot);
}

TEST_F(WarmKeyTest, IsAnotherWithSysctls) {
  warm_ = Key();
  PauseSpecRequest pod;
  pod.sysctls = {{"fs.nr_open", "4096"}};
  EXPECT_EQ(Difference(pod), kRoot);
}

TEST_F(WarmKeyTest, IsAnotherWithAnnotationsForTheSentry) {
  warm_ = Key();
  PauseSpecRequest pod;
  pod.annotations = {{"dev.gvisor.spec.mount.shared.type", "tmpfs"}};
  EXPECT_EQ(Difference(pod), kRoot);
  pod.annotations = {{"io.kubernetes.cri.container-name", "root"}};
  EXPECT_EQ(Difference(pod), kRoot);
}

TEST_F(WarmKeyTest, IsTheSameInACgroupWithoutLimits) {
  warm_ = Key();
  Limit("memory.max", "max");
  Limit("cpu.max", "max 100000");
  EXPECT_EQ(Difference({}), "");
}

TEST_F(WarmKeyTest, IsAnotherWithALimitOfMemory) {
  warm_ = Key();
  Limit("memory.max", "1048576");
  EXPECT_EQ(Difference({}), kMachine);
}

TEST_F(WarmKeyTest, IsAnotherOnOtherProcessors) {
  warm_ = Key();
  Limit("cpuset.cpus.effective", "4095");
  EXPECT_EQ(Difference({}), kMachine);
}

}  // namespace
}  // namespace gantry::gvisor
