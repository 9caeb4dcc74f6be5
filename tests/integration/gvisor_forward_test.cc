// SPDX-License-Identifier: Apache-2.0
//
// What forwards a port into a sentry, by connections to where containerd makes them: to the
// loopback of the pod's network namespace on the host.
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/harness/cri_pod.h"
#include "tests/harness/forwarded.h"

namespace gantry::e2e {
namespace {

class GvisorForward : public CriPodTest {
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
    config_.hostname = "web-0";
    pod_ = RunPod(config_);
  }

  /// Gives the container, once `script` has been run and the port is listened to.
  std::string RunServer(const std::string& script, uint16_t port) {
    const std::string id = RunContainerIn(pod_, config_, "server", {"sh", "-c", script});
    const std::string listens = "netstat -ltn | grep -q ':" + std::to_string(port) + " '";
    EXPECT_TRUE(Eventually([&] {
      const auto looked = cri().Exec(id, {"sh", "-c", listens});
      return looked && looked->exit_code == 0;
    }));
    netns_ = OpenNetns(PidOf(id));
    return id;
  }

  std::string RunEcho() { return RunServer(EchoScript(8080), 8080); }

  UniqueFd Connect(uint16_t port) const { return ConnectIn(netns_, port); }

  /// The processes on the host that carry bytes.
  static std::vector<HostProcess> Carriers() {
    return Processes([keeper = node().Keeper().pid](const HostProcess& process) {
      return process.parent == keeper && process.name == "gantry-forward";
    });
  }

  PodConfig config_;
  std::string pod_;
  UniqueFd netns_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, GvisorForward, kSandboxers, SandboxerName);

TEST_P(GvisorForward, PassesTheClientsEndAndThenTheAnswer) {
  RunEcho();
  const UniqueFd client = Connect(8080);
  Say(client, "one\ntwo\n");
  ASSERT_EQ(shutdown(client.get(), SHUT_WR), 0);
  EXPECT_EQ(HearAll(client), std::pair(std::string("got one\ngot two\nend\n"), 0));
}

TEST_P(GvisorForward, ResetsWhereNobodyListens) {
  RunEcho();
  const UniqueFd client = Connect(8081);
  EXPECT_EQ(HearAll(client), std::pair(std::string(), ECONNRESET));
  ExpectAnswer(Connect(8080), "still");
}

TEST_P(GvisorForward, CarriesManyAtOnce) {
  RunEcho();
  // As many as wait in the server's queue.
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(Connect(8080));
  }
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) {
      ExpectAnswer(clients[i], std::to_string(round) + " " + std::to_string(i));
    }
  }
}

TEST_P(GvisorForward, GoesOnWithoutTheEngine) {
  RunEcho();
  const UniqueFd before = Connect(8080);
  ExpectAnswer(before, "before");
  const pid_t engine = node().Engine().pid;
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  ExpectAnswer(before, "meanwhile");
  // It waits until there is an engine again.
  ExpectAnswer(Connect(8080), "next");
  ExpectAnswer(before, "after");
}

TEST_P(GvisorForward, IsHeldUpByNoServerThatTakesNobody) {
  const std::string id =
      RunServer("nc -ll -p 8080 -e cat & kill -STOP $!; " + EchoScript(8081), 8081);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 30; ++i) {
    // More than wait in its queue; the sentry drops the others and they try again.
    clients.push_back(Connect(8080));
  }
  ExpectAnswer(Connect(8081), "other");
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
}

TEST_P(GvisorForward, EndsWithThePod) {
  RunEcho();
  const UniqueFd client = Connect(8080);
  ExpectAnswer(client, "one");
  EXPECT_EQ(Carriers().size(), 1U);
  RemovePods();
  EXPECT_EQ(HearAll(client).first, "");
  EXPECT_TRUE(Carriers().empty());
}

}  // namespace
}  // namespace gantry::e2e
