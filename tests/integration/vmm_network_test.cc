// SPDX-License-Identifier: Apache-2.0
//
// The network of a pod in a machine: addresses, routes and neighbours as CNI made them in the pod's
// namespace, on a bridge, both families, both directions.
#include <sstream>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

constexpr uint16_t kPort = 8080;
constexpr const char* kServer = "exec nc -ll -p 8080 -e sh -c 'read x; echo got $x'";

class VmmNetwork : public VmmPodTest {
 protected:
  struct Addresses {
    std::string v4;
    std::string v6;
  };

  /// As the CNI plugin has given them.
  static Addresses AddressesOf(const std::string& pod) {
    std::istringstream lines(ReadText(settings().root + "/cni/bin/test.pods"));
    Addresses addresses;
    for (std::string id; lines >> id >> addresses.v4 >> addresses.v6;) {
      if (id == pod) {
        return addresses;
      }
    }
    ADD_FAILURE() << "no addresses of " << pod;
    return {};
  }

  void ExpectReachesItsGateways(const std::string& id) {
    for (const std::string family : {"-4", "-6"}) {
      const std::string gateway =
          Says(id, "ip " + family + " route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'");
      EXPECT_EQ(Exec(id, {"sh", "-c", "ping " + family + " -c 1 -W 20 " + gateway}).exit_code, 0)
          << gateway;
    }
  }

  /// What a client of `kubectl port-forward` hears.
  std::string Forwarded(const std::string& word) {
    const auto url = cri().PortStream(pod(), kPort);
    auto opened = url ? ChannelSocket::Open(*url) : std::unexpected(url.error());
    if (!opened) {
      return opened.error().message;
    }
    opened->Send(0, word + "\n");
    opened->ReadToEnd();
    // Both channels begin with the port.
    return opened->Received(0).substr(2) + opened->Received(1).substr(2);
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, VmmNetwork, kSandboxers, SandboxerName);

// K10.
TEST_P(VmmNetwork, IsWhatThePodsNamespaceHas) {
  const std::string id = Run("one");
  const Addresses own = AddressesOf(pod());
  const std::string addresses = Says(id, "ip addr show eth0");
  EXPECT_THAT(addresses, HasSubstr("inet " + own.v4 + "/24"));
  EXPECT_THAT(addresses, HasSubstr("inet6 " + own.v6 + "/64 scope global"));
  EXPECT_THAT(addresses, HasSubstr("mtu 1400"));
  EXPECT_THAT(Says(id, "ip addr show lo"), HasSubstr("127.0.0.1/8"));
  ExpectReachesItsGateways(id);
}

TEST_P(VmmNetwork, IsReachedByTheNodeAndByAnotherPod) {
  Run("server", kServer);
  PodConfig other = Pod("-other");
  other.hostname = "web-1";
  const std::string other_pod = RunPod(other);
  const std::string client =
      RunContainerIn(other_pod, other, Container("client", "exec sleep 100000"));
  const Addresses addresses = AddressesOf(pod());
  for (const std::string& address : {addresses.v4, addresses.v6}) {
    const std::string ask = "echo word | nc " + address + " 8080";
    EXPECT_TRUE(Eventually([&] {
      return RunProgram({"busybox", "sh", "-c", ask}).out == "got word\n";
    })) << address;
    EXPECT_EQ(Says(client, ask), "got word\n") << address;
  }
}

TEST_P(VmmNetwork, AndItsForwardedPortsAreThoseOfTheNextEngine) {
  EXPECT_THAT(Forwarded("early"), HasSubstr("connection reset"));
  const std::string id = Run("server", kServer);
  EXPECT_TRUE(Eventually([&] { return Forwarded("one") == "got one\n"; })) << Forwarded("last");
  ASSERT_NO_FATAL_FAILURE(KillEngineOf(node()));
  EXPECT_EQ(Forwarded("two"), "got two\n");
  ExpectReachesItsGateways(id);
}

}  // namespace
}  // namespace gantry::e2e
