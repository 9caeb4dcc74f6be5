// SPDX-License-Identifier: Apache-2.0
//
// The network of a pod in a machine: addresses, routes and neighbours as CNI made them in the pod's
// namespace, both families, both directions.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class VmmNetwork : public VmmPodTest {
 protected:
  void SetUp() override {
    VmmPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    config_ = Pod();
    config_.hostname = "web-0";
    pod_ = RunPod(config_);
    id_ = RunContainerIn(pod_, config_, Container("one", "exec sleep 100000"));
    // As the tests' CNI plugin makes them of the pod's id (harness/vmm_node.h).
    const std::string hash = RunProgram({"sha256sum"}, pod_).out.substr(0, 4);
    ASSERT_EQ(hash.size(), 4U);
    const int third = std::stoi(hash.substr(0, 2), nullptr, 16);
    const int fourth = std::stoi(hash.substr(2, 2), nullptr, 16) / 4 * 4 + 2;
    v4_ = "198.18." + std::to_string(third) + "." + std::to_string(fourth);
    v6_ = RunProgram({"sh", "-c", "printf 'fd67:%x::2' 0x" + hash}).out;
  }

  /// The node's end is the one before it.
  static std::string NodeOf(std::string pod) {
    pod.back() = static_cast<char>(pod.back() - 1);
    return pod;
  }

  std::string Gateway4() {
    return Says(id_, "ip route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'");
  }

  std::string Gateway6() {
    return Says(id_, "ip -6 route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'");
  }

  PodConfig config_;
  std::string pod_;
  std::string id_;
  std::string v4_;
  std::string v6_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, VmmNetwork, kSandboxers, SandboxerName);

// K10.
TEST_P(VmmNetwork, IsWhatThePodsNamespaceHas) {
  const std::string addresses = Says(id_, "ip addr show eth0");
  EXPECT_THAT(addresses, HasSubstr("inet " + v4_ + "/30"));
  EXPECT_THAT(addresses, HasSubstr("inet6 " + v6_ + "/64 scope global"));
  EXPECT_THAT(addresses, HasSubstr("mtu 1400"));
  EXPECT_NE(Gateway4(), "");
  EXPECT_EQ(Gateway6(), NodeOf(v6_) + "\n");
  EXPECT_THAT(Says(id_, "ip addr show lo"), HasSubstr("127.0.0.1/8"));
}

TEST_P(VmmNetwork, ReachesTheNode) {
  EXPECT_EQ(Exec(id_, {"sh", "-c", "ping -c 1 -W 20 " + Gateway4()}).exit_code, 0);
  EXPECT_EQ(Exec(id_, {"sh", "-c", "ping -6 -c 1 -W 20 " + Gateway6()}).exit_code, 0);
}

TEST_P(VmmNetwork, IsReachedByTheNode) {
  RunContainerIn(pod_, config_, Container("server", "exec nc -ll -p 8080 -e echo served"));
  for (const std::string& address : {v4_, v6_}) {
    EXPECT_TRUE(Eventually([&] {
      return RunProgram({"busybox", "nc", address, "8080"}).out == "served\n";
    })) << address;
  }
}

TEST_P(VmmNetwork, IsTheSameInTheNextEngine) {
  const pid_t engine = node().Engine().pid;
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  ASSERT_TRUE(WaitGone(engine));
  EXPECT_EQ(Exec(id_, {"sh", "-c", "ping -c 1 -W 20 " + Gateway4()}).exit_code, 0);
}

}  // namespace
}  // namespace gantry::e2e
