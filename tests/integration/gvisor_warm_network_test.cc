// SPDX-License-Identifier: Apache-2.0
//
// A pod's network, handed to a sandbox that was booted before there was one: a pair of
// interfaces between the pod's namespace and one of the test's.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "tests/harness/forwarded.h"
#include "tests/harness/gvisor_warm_test.h"

namespace gantry::e2e {
namespace {

class GvisorWarmNetwork : public GvisorWarmTest {
 protected:
  void SetUp() override {
    GvisorWarmTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    outside_.emplace(Words{"unshare", "--net", "sh", "-c", "echo up; exec sleep 1000"});
    if (!outside_->ReadUntil("up\n")) {
      GTEST_SKIP() << "no network namespaces here: " << outside_->err();
    }
    WritePlugin();
    Restart(1);
  }

  void TearDown() override {
    WriteText(Plugin(), NetworkPlugin(settings()));
    GvisorWarmTest::TearDown();
  }

  std::string Plugin() const { return settings().root + "/cni/bin/test"; }

  /// Where the plugin has written the path of the pod's: its sentry is in another.
  std::string NetnsFile() const { return settings().root + "/netns"; }

  UniqueFd PodsNetns() const {
    const std::string path = ReadText(NetnsFile());
    return UniqueFd(open(path.substr(0, path.find('\n')).c_str(), O_RDONLY | O_CLOEXEC));
  }

  std::string Outside() const { return "/proc/" + std::to_string(outside_->pid()) + "/ns/net"; }

  void WritePlugin() const {
    WriteText(Plugin(), R"SH(#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  set -e
  echo "$CNI_NETNS" > )SH" + NetnsFile() +
                            R"SH(
  outside=)SH" + Outside() + R"SH(
  nsenter --net="$outside" ip link add gw type veth peer name "$CNI_IFNAME" netns "$CNI_NETNS"
  nsenter --net="$outside" ip addr add 10.77.0.1/24 dev gw
  nsenter --net="$outside" ip link set gw up
  nsenter --net="$CNI_NETNS" ip link set lo up
  nsenter --net="$CNI_NETNS" ip addr add 10.77.0.2/24 dev "$CNI_IFNAME"
  nsenter --net="$CNI_NETNS" ip link set "$CNI_IFNAME" up
  nsenter --net="$CNI_NETNS" ip route add default via 10.77.0.1
  printf '{"cniVersion":"1.0.0","interfaces":[{"name":"%s","sandbox":"%s"}],"ips":[{"interface":0,"address":"10.77.0.2/24","gateway":"10.77.0.1"}]}' \
    "$CNI_IFNAME" "$CNI_NETNS" ;;
esac
)SH");
  }

  /// What it says to who connects from outside.
  std::string Ask(int port) const {
    return RunProgram({"nsenter", "--net=" + Outside(), "bash", "-c",
                       "exec 3<>/dev/tcp/10.77.0.2/" + std::to_string(port) + " && cat <&3"})
        .out;
  }

  void ExpectAnswers(const std::string& id) {
    EXPECT_TRUE(Eventually([&] { return Ask(8080) == "seen\n"; }));
    EXPECT_EQ(Exec(id, {"sh", "-c", "ip -4 addr show eth0 | grep -c 10.77.0.2/24"}).out, "1\n");
  }

  std::optional<Program> outside_;
};

TEST_F(GvisorWarmNetwork, HasItsPortsForwarded) {
  const std::vector<pid_t> before = Waiting();
  const PodConfig config = NamedPod();
  const std::string pod = RunPod(config);
  const pid_t sentry = OfPod();
  EXPECT_TRUE(std::ranges::contains(before, sentry));
  const std::string id = RunContainerIn(pod, config, "one", {"sh", "-c", EchoScript(8080)});
  EXPECT_TRUE(Eventually([&] {
    const auto looked = cri().Exec(id, {"sh", "-c", "netstat -ltn | grep -q ':8080 '"});
    return looked && looked->exit_code == 0;
  }));
  const UniqueFd netns = PodsNetns();
  ASSERT_TRUE(netns) << ReadText(NetnsFile());
  const UniqueFd client = ConnectIn(netns, 8080);
  ExpectAnswer(client, "before");
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectAnswer(client, "meanwhile");
  // It waits until there is an engine again.
  ExpectAnswer(ConnectIn(netns, 8080), "next");
  Say(client, "last\n");
  ASSERT_EQ(shutdown(client.get(), SHUT_WR), 0);
  EXPECT_EQ(HearAll(client), std::pair(std::string("got last\nend\n"), 0));
  EXPECT_EQ(OfPod(), sentry);
}

TEST_F(GvisorWarmNetwork, IsThePods) {
  const std::vector<pid_t> before = Waiting();
  const PodConfig config = NamedPod();
  const std::string pod = RunPod(config);
  const pid_t sentry = OfPod();
  EXPECT_TRUE(std::ranges::contains(before, sentry));
  const std::string id = RunContainerIn(
      pod, config, "one", {"sh", "-c", "while :; do echo seen | nc -l -p 8080; done"});
  ExpectAnswers(id);
  // It is the sentry's, whoever is the engine.
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectAnswers(id);
  EXPECT_EQ(OfPod(), sentry);
}

}  // namespace
}  // namespace gantry::e2e
