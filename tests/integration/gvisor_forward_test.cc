// SPDX-License-Identifier: Apache-2.0
//
// What forwards a port into a sentry, by connections to where containerd makes them: to the
// loopback of the pod's network namespace on the host.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "tests/integration/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

/// In the pod: answers each line, and when there are no more says so.
constexpr const char* kEcho = "while read x; do echo got $x; done; echo end";

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
    netns_.reset(
        open(("/proc/" + std::to_string(PidOf(id)) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    return id;
  }

  std::string RunEcho() {
    return RunServer(std::string("nc -ll -p 8080 -e sh -c '") + kEcho + "'", 8080);
  }

  UniqueFd Connect(uint16_t port) const {
    UniqueFd made;
    std::thread([&] {
      if (setns(netns_.get(), CLONE_NEWNET) == 0) {
        made.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      }
    }).join();
    const timeval limit = {kSecondsOfAWait, 0};
    setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
        << errno;
    return made;
  }

  static void Say(const UniqueFd& client, const std::string& text) {
    EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  static std::string Hear(const UniqueFd& client, size_t size) {
    std::string text(size, '\0');
    const ssize_t n = recv(client.get(), text.data(), text.size(), MSG_WAITALL);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }

  /// Up to the end, and the errno of that.
  static std::pair<std::string, int> HearAll(const UniqueFd& client) {
    std::string text;
    std::array<char, 4096> part{};
    ssize_t n = 0;
    while ((n = recv(client.get(), part.data(), part.size(), 0)) > 0) {
      text.append(part.data(), static_cast<size_t>(n));
    }
    return {text, n < 0 ? errno : 0};
  }

  static void ExpectAnswer(const UniqueFd& client, const std::string& word) {
    Say(client, word + "\n");
    EXPECT_EQ(Hear(client, word.size() + 5), "got " + word + "\n");
  }

  /// The processes on the host that carry bytes.
  static std::vector<HostProcess> Carriers() {
    return Processes([keeper = node().Keeper().pid](const HostProcess& process) {
      return process.parent == keeper && process.name == "gantry-forward";
    });
  }

  static constexpr time_t kSecondsOfAWait = 30;
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
  const std::string id = RunServer(
      "nc -ll -p 8080 -e cat & kill -STOP $!; nc -ll -p 8081 -e sh -c '" + std::string(kEcho) + "'",
      8081);
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
