// SPDX-License-Identifier: Apache-2.0
//
// Port forwarding, as `kubectl port-forward` asks for it: containerd connects from
// inside the pod's network, so the network must be where it believes it is.
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriForward : public CriPodTest {
 protected:
  /// Answers each line that comes on the port.
  std::string RunServer(const std::string& pod, const PodConfig& config, uint16_t port) {
    const std::string id = RunContainerIn(
        pod, config, "server",
        {"nc", "-ll", "-p", std::to_string(port), "-e", "sh", "-c",
         "while read x; do echo $(hostname) got $x; [ $x != last ] || exit 0; done"});
    // By a connection, as not each sandbox's list of listeners has all: a sentry of 2026-09 on
    // the node's network has none of those of IPv6.
    const std::string listens = "nc 127.0.0.1 " + std::to_string(port) + " </dev/null";
    EXPECT_TRUE(Eventually([&] {
      const auto looked = cri().Exec(id, {"sh", "-c", listens});
      return looked && looked->exit_code == 0;
    }));
    return id;
  }

  Result<ChannelSocket> Open(const std::string& pod, uint16_t port) {
    GANTRY_TRY(const std::string url, cri().PortStream(pod, port));
    return ChannelSocket::Open(url);
  }

  /// Both channels begin with the port, low byte first.
  static std::string Begin(uint16_t port) {
    return {static_cast<char>(port & 0xff), static_cast<char>(port >> 8)};
  }

  void ExpectAnswers(const std::string& pod, uint16_t port, const std::string& host) {
    auto opened = Open(pod, port);
    ASSERT_TRUE(opened) << opened.error().message;
    std::string expected = Begin(port);
    for (const std::string word : {"one", "two", "last"}) {
      opened->Send(kData, word + "\n");
      expected += host + " got " + word + "\n";
      EXPECT_TRUE(opened->ReadWhile([&] { return opened->Received(kData) == expected; }))
          << opened->Received(kData) << opened->Received(kError);
    }
    // The server hangs up after the last, and so the client learns.
    EXPECT_TRUE(opened->ReadToEnd());
    EXPECT_EQ(opened->Received(kError), Begin(port));
  }

  static constexpr size_t kData = 0;
  static constexpr size_t kError = 1;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriForward, kSandboxers, SandboxerName);

TEST_P(CriForward, ReachesAPodWithItsOwnNetwork) {
  PodConfig config = Pod();
  config.hostname = "web-0";
  const std::string pod = RunPod(config);
  RunServer(pod, config, 8080);
  ExpectAnswers(pod, 8080, "web-0");
  ExpectAnswers(pod, 8080, "web-0");
}

TEST_P(CriForward, KeepsTheSamePortOfTwoPodsApart) {
  std::vector<std::pair<std::string, std::string>> pods;
  for (const std::string name : {"web-0", "web-1"}) {
    PodConfig config = Pod("-" + name);
    config.hostname = name;
    pods.emplace_back(RunPod(config), name);
    RunServer(pods.back().first, config, 8080);
  }
  for (const auto& [pod, name] : pods) {
    ExpectAnswers(pod, 8080, name);
  }
}

TEST_P(CriForward, ReachesAPodOnTheNodesNetwork) {
  // Bound, so that nobody else is given the port, and not listening.
  const UniqueFd reserved(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
  ASSERT_EQ(bind(reserved.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(reserved.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const uint16_t port = ntohs(address.sin_port);
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunServer(pod, config, port);
  std::string host = Exec(id, {"hostname"}).out;
  host.pop_back();
  ExpectAnswers(pod, port, host);
}

TEST_P(CriForward, TellsThatNobodyListens) {
  PodConfig config = Pod();
  config.hostname = "web-0";
  const std::string pod = RunPod(config);
  auto opened = Open(pod, 8080);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->ReadToEnd());
  // Whether somebody listens in a kernel of its own is known when the client is connected already.
  const bool is_own = settings().gvisor() || settings().vmm();
  const std::string cause = is_own ? "connection reset" : "connection refused";
  EXPECT_NE(opened->Received(kError).find(cause), std::string::npos) << opened->Received(kError);
}

}  // namespace
}  // namespace gantry::e2e
