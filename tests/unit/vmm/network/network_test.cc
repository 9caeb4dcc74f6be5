// SPDX-License-Identifier: Apache-2.0
//
// A pod's network, handed over: namespaces, taps and traffic control are the kernel's, the guest is
// another namespace (guest_side.h). tests/vmm/network has a real one.
#include "plugins/vmm/network/network.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/toolkit/net/network_fixture.h"
#include "tests/unit/vmm/network/guest_side.h"

namespace gantry::vmm {
namespace {

using net::RunIn;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class VmmNetwork : public net::NetworkTest {
 protected:
  /// eth0 as Calico has it: an address of its own, a gateway that is on no net; of IPv6 a gateway
  /// that is link-local. Behind the gateway there are 8.8.8.8 and 2001:db8:9::9.
  void AddRoutedPod() {
    AddInterface("eth0", "02:00:00:00:00:01", 1450);
    RunIn(pod_,
          "ip link set lo up\n"
          "ip addr add 10.1.0.2/24 brd 10.1.0.255 dev eth0\n"
          "ip addr add 10.5.0.2/32 dev eth0\n"
          "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
          "ip addr add fe80::1:2/64 dev eth0 nodad\n"
          "ip route add 169.254.1.1 dev eth0 scope link\n"
          "ip route add default via 169.254.1.1 dev eth0\n"
          "ip route add default via fe80::1 dev eth0\n");
    RunIn(outside_,
          "ip link set lo up\n"
          "ip addr add 169.254.1.1/32 dev eth0\n"
          "ip addr add 8.8.8.8/32 dev lo\n"
          "ip addr add fe80::1/64 dev eth0 nodad\n"
          "ip addr add 2001:db8:9::9/128 dev lo nodad\n"
          "ip route add 10.1.0.2 dev eth0 src 169.254.1.1\n"
          "ip route add 10.5.0.2 dev eth0 src 169.254.1.1\n"
          "ip -6 route add 2001:db8:1::2 dev eth0\n");
  }

  Network Connected() {
    auto network = Network::Connect({.netns = Path(pod_)});
    EXPECT_TRUE(network) << network.error().message;
    return std::move(network).value();
  }

  static protocol::SetUp SetUpOf(const Network& network) {
    protocol::SetUp set_up;
    network.FillSetUp(set_up);
    return set_up;
  }

  /// Addresses, routes and neighbours, as `ip` shows them, without those of taps.
  static std::string Seen(const UniqueFd& netns) {
    std::string text =
        RunIn(netns,
              "ip -o addr | grep -v gtap | sed -E 's/^[0-9]+: //; s/ (noprefixroute|nodad|metric "
              "[0-9]+)//g; s/ +valid_lft.*//; s/\\\\$//' | sort\n"
              "for family in -4 -6; do ip $family route show table all | grep -v gtap; done\n"
              "ip neigh show nud permanent | grep -v gtap | sort; ip rule; ip -6 rule\n");
    return text;
  }

  /// The kernel adds some of it a moment later.
  static std::string SeenLike(const UniqueFd& netns, const std::string& expected) {
    constexpr int kTries = 500;
    std::string seen = Seen(netns);
    for (int i = 0; i < kTries && seen != expected; ++i) {
      seen = Seen(netns);
    }
    return seen;
  }

  void ExpectTalks(const GuestSide& guest, const UniqueFd& outside) {
    for (const char* address : {"10.1.0.2", "2001:db8:1::2"}) {
      const Status done = Talk(outside, guest.netns(), address);
      EXPECT_TRUE(done) << "to the guest: " << done.error().message;
    }
    for (const char* address : {"8.8.8.8", "2001:db8:9::9"}) {
      const Status done = Talk(guest.netns(), outside, address);
      EXPECT_TRUE(done) << "from the guest: " << done.error().message;
    }
  }

  /// All that a handing over could leave behind.
  std::string Traces() {
    return State() +
           RunIn(pod_, "ip -o link | cut -d: -f2; tc qdisc show; tc filter show dev eth0 ingress");
  }
};

TEST_F(VmmNetwork, TheGuestTakesThePodsPlace) {
  AddRoutedPod();
  Network network = Connected();
  std::vector<Nic> nics = network.TakeNics();
  ASSERT_THAT(nics, SizeIs(1));
  EXPECT_EQ(nics[0].id, "net0");
  EXPECT_EQ(nics[0].mac, "02:00:00:00:00:01");
  EXPECT_EQ(nics[0].mtu, 1450U);
  EXPECT_TRUE(CheckNic(nics[0]));
  EXPECT_THAT(network.TakeNics(), IsEmpty());
  const GuestSide guest(std::move(nics));
  const Status set_up = guest.SetUp(SetUpOf(network));
  ASSERT_TRUE(set_up) << set_up.error().message;
  ExpectTalks(guest, outside_);
  const auto interfaces = network.Interfaces();
  ASSERT_TRUE(interfaces) << interfaces.error().message;
  ASSERT_THAT(*interfaces, SizeIs(1));
  EXPECT_EQ((*interfaces)[0].name, "eth0");
  EXPECT_GT((*interfaces)[0].received.bytes, 2U << 20);
  EXPECT_GT((*interfaces)[0].sent.bytes, 2U << 20);
}

// K10: both families, with and without gateways, gateways on no net and link-local ones.
TEST_F(VmmNetwork, TheGuestSeesWhatThePodSees) {
  AddInterface("eth0", "02:00:00:00:00:01", 1450);
  AddInterface("net1", "02:00:00:00:00:02");
  RunIn(pod_,
        "ip link set lo up\n"
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "ip addr add 10.1.0.3/24 dev eth0\n"
        "ip addr add 10.9.0.2 peer 10.9.0.1 dev eth0\n"
        "ip addr add 10.7.0.2/16 brd 10.7.255.255 dev net1 noprefixroute\n"
        "ip addr add 10.2.0.2/16 metric 50 dev net1\n"
        "ip addr add 10.96.0.10/32 dev lo\n"
        "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
        "ip addr add 2001:db8:1::3/64 dev eth0 nodad\n"
        "ip addr add fe80::1:2/64 dev eth0 nodad\n"
        "ip addr add 2001:db8:2::2/128 dev net1 nodad\n"
        "ip route add default via 169.254.1.1 dev eth0 onlink\n"
        "ip route add default dev net1 metric 200\n"
        "ip route add default via 10.2.0.1 dev net1 metric 300 table 100\n"
        "ip route add 10.96.0.0/12 via 10.2.0.1 mtu 1400\n"
        "ip route add 192.168.0.0/24 dev eth0 src 10.1.0.3 table 1000\n"
        "ip route add 192.168.1.0/24 dev net1 proto bird\n"
        "ip route add 10.99.0.0/16 nexthop via 10.1.0.1 dev eth0 weight 3 nexthop via 10.2.0.1 "
        "dev net1\n"
        "ip route add 10.98.0.0/16 via inet6 fe80::1 dev eth0\n"
        "ip rule add from 10.1.0.3 table 1000 pref 99\n"
        "ip rule add iif lo to 10.97.0.0/16 lookup 100 suppress_prefixlength 0 pref 98\n"
        "ip -6 rule add fwmark 3/0xff table 100 pref 97\n"
        "ip -6 route add default via fe80::1 dev eth0\n"
        "ip -6 route add default dev net1 metric 2048\n"
        "ip -6 route add 2001:db8:7::/48 via 2001:db8:1::9 dev eth0 mtu 1300\n"
        "ip -6 route add 2001:db8:8::/48 nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev "
        "net1\n"
        "ip neigh add 169.254.1.1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n"
        "ip neigh add fe80::1 lladdr 02:00:00:00:00:ab dev eth0 nud permanent\n");
  Network network = Connected();
  const GuestSide guest(network.TakeNics());
  for (int again = 0; again < 2; ++again) {
    const Status set_up = guest.SetUp(SetUpOf(network));
    ASSERT_TRUE(set_up) << set_up.error().message;
    const std::string pods = Seen(pod_);
    EXPECT_EQ(SeenLike(guest.netns(), pods), pods);
  }
}

// K11: nobody outside answers who asks for an address.
TEST_F(VmmNetwork, TheFirstPacketNeedsNoAnswerOfANeighbour) {
  for (const char* state : {"permanent", "reachable", "stale"}) {
    NetworkTest::SetUp();
    AddRoutedPod();
    std::string mac = RunIn(outside_, "ip -o link show eth0 | sed 's/.*ether //; s/ .*//'");
    mac.pop_back();
    RunIn(outside_,
          "ip link set eth0 arp off\n"
          "ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:01 dev eth0 nud permanent\n");
    RunIn(pod_, Format("ip neigh add 169.254.1.1 lladdr {} dev eth0 nud {}", mac, state));
    Network network = Connected();
    const GuestSide guest(network.TakeNics());
    ASSERT_TRUE(guest.SetUp(SetUpOf(network)));
    const Status done = Talk(guest.netns(), outside_, "8.8.8.8");
    EXPECT_TRUE(done) << state << ": " << done.error().message;
  }
}

TEST_F(VmmNetwork, OfAMacvlanTheGuestTakesThePlaceToo) {
  const UniqueFd node = net::NewNetns();
  RunIn(outside_, Format("ip link add name eth0 type veth peer name up0 netns {}\n"
                         "ip link set eth0 up\n",
                         Path(node)));
  RunIn(node, Format("ip link set up0 up\n"
                     "ip link add link up0 name eth0 address 02:00:00:00:00:01 type macvlan "
                     "mode bridge\n"
                     "ip link set eth0 netns {}\n",
                     Path(pod_)));
  RunIn(pod_,
        "ip link set lo up; ip link set eth0 up\n"
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
        "ip route add default via 10.1.0.1 dev eth0\n"
        "ip -6 route add default via 2001:db8:1::1 dev eth0\n");
  RunIn(outside_,
        "ip link set lo up\n"
        "ip addr add 10.1.0.1/24 dev eth0; ip addr add 8.8.8.8/32 dev lo\n"
        "ip addr add 2001:db8:1::1/64 dev eth0 nodad; ip addr add 2001:db8:9::9/128 dev lo\n");
  Network network = Connected();
  const GuestSide guest(network.TakeNics());
  ASSERT_TRUE(guest.SetUp(SetUpOf(network)));
  ExpectTalks(guest, outside_);
}

TEST_F(VmmNetwork, LeavesThePodAsItWas) {
  AddRoutedPod();
  AddInterface("eth1", "02:00:00:00:00:02");
  RunIn(pod_, "ip addr add 10.2.0.2/16 dev eth1");
  const std::string before = Traces();
  Network network = Connected();
  EXPECT_NE(Traces(), before);
  for (int i = 0; i < 2; ++i) {
    const Status done = network.Disconnect();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(Traces(), before);
  }
  EXPECT_THAT(network.TakeNics(), IsEmpty());
}

TEST_F(VmmNetwork, TheNextEngineDisconnectsIt) {
  AddRoutedPod();
  const std::string before = Traces();
  std::string saved;
  {
    // A VMM that opens its taps by name: they do not go with a descriptor.
    auto network = Network::Connect({.netns = Path(pod_), .tap_user = 12345});
    ASSERT_TRUE(network) << network.error().message;
    const std::vector<Nic> nics = network->TakeNics();
    ASSERT_THAT(nics, SizeIs(1));
    EXPECT_FALSE(nics[0].tap);
    EXPECT_THAT(RunIn(pod_, "ip -d link show " + nics[0].tap_name), HasSubstr("user 12345"));
    saved = network->Save();
  }
  auto network = Network::Recover(saved);
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(network->netns(), Path(pod_));
  EXPECT_EQ(network->Save(), saved);
  EXPECT_THAT(*network->Interfaces(), SizeIs(1));
  EXPECT_THAT(SetUpOf(*network).interfaces, IsEmpty());
  ASSERT_TRUE(network->Disconnect());
  EXPECT_EQ(Traces(), before);
}

TEST_F(VmmNetwork, AStartThatIsTriedAgainReplacesWhatTheFirstHasLeft) {
  AddRoutedPod();
  const std::string before = Traces();
  for (int i = 0; i < 3; ++i) {
    auto network = Network::Connect({.netns = Path(pod_), .tap_user = 0});
    ASSERT_TRUE(network) << network.error().message;
  }
  Network last = Connected();
  const GuestSide guest(last.TakeNics());
  ASSERT_TRUE(guest.SetUp(SetUpOf(last)));
  ExpectTalks(guest, outside_);
  ASSERT_TRUE(last.Disconnect());
  EXPECT_EQ(Traces(), before);
}

TEST_F(VmmNetwork, AStartThatFailsLeavesNothing) {
  AddRoutedPod();
  AddInterface("eth1", "02:00:00:00:00:02");
  RunIn(pod_, "ip addr add 10.2.0.2/16 dev eth1");
  // The name that the tap of the second one would have.
  const int index = std::stoi(RunIn(pod_, "ip -o link show eth1 | cut -d: -f1"));
  const std::string taken = Format("gtap{}", index);
  RunIn(pod_, Format("ip link add name {} type veth peer name other", taken));
  const std::string before = Traces();
  const auto network = Network::Connect({.netns = Path(pod_)});
  EXPECT_EQ(network.error().code, Code::kAlreadyExists);
  EXPECT_EQ(network.error().message,
            Format("connect the network of '{}': hand over interface 'eth1': make tap '{}': there "
                   "is another interface of that name",
                   Path(pod_), taken));
  EXPECT_EQ(Traces(), before);
}

TEST_F(VmmNetwork, WhatIsGoneNeedsNotBeDisconnected) {
  AddRoutedPod();
  Network network = Connected();
  RunIn(pod_, "ip link del eth0");
  EXPECT_THAT(*network.Interfaces(), IsEmpty());
  Status done = network.Disconnect();
  EXPECT_TRUE(done) << done.error().message;
  NetworkTest::SetUp();
  AddRoutedPod();
  Network second = Connected();
  pod_.reset();
  EXPECT_EQ(second.Interfaces().error().code, Code::kNotFound);
  done = second.Disconnect();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(second.Disconnect());
}

TEST_F(VmmNetwork, RefusesTheHostsNetwork) {
  const auto network = Network::Connect({.netns = "/proc/self/ns/net"});
  EXPECT_EQ(network.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(network.error().message, HasSubstr("it is the host's own network"));
}

TEST_F(VmmNetwork, RefusesByNameBeforeAnythingIsChanged) {
  AddRoutedPod();

  struct Case {
    const char* add;
    const char* remove;
    const char* words;
  };

  for (const Case& one : {
           Case{"ip route add 10.99.0.0/16 tos 4 via 169.254.1.1 dev eth0",
                "ip route del 10.99.0.0/16 tos 4",
                "route to 10.99.0.0/16 by 'eth0' cannot be a guest's: it is for a source or a type "
                "of service"},
           Case{"ip link add name dark0 type veth peer name dark1; for i in 0 1; do ip link set "
                "dark$i addrgenmode none; ip link set dark$i up; done; ip route add 10.99.0.0/16 "
                "nexthop via 169.254.1.1 dev eth0 nexthop dev dark0",
                "ip link del dark0",
                "it has a next hop by an interface that is down or has no address"},
           Case{"ip link set eth0 arp off", "ip link set eth0 arp on",
                "interface 'eth0' cannot be a guest's: it knows no ARP ('veth')"},
           Case{"ip tuntap add mode tap name tap9; ip link set tap9 up; ip addr add 10.8.0.1/24 "
                "dev tap9",
                "ip link del tap9", "interface 'tap9' cannot be a guest's: it is of the kind tun"},
           Case{"ip link add link eth0 name over0 type macvlan; ip link set over0 up; ip addr add "
                "10.8.0.1/24 dev over0",
                "ip link del over0",
                "interface 'over0' cannot be a guest's: it is on top of 'eth0'"},
       }) {
    RunIn(pod_, one.add);
    const std::string before = RunIn(pod_, "ip -o link | cut -d: -f2; tc qdisc show");
    const auto network = Network::Connect({.netns = Path(pod_)});
    ASSERT_FALSE(network) << one.add;
    EXPECT_EQ(network.error().code, Code::kFailedPrecondition) << network.error().message;
    EXPECT_THAT(network.error().message, HasSubstr(one.words));
    EXPECT_EQ(RunIn(pod_, "ip -o link | cut -d: -f2; tc qdisc show"), before) << one.add;
    RunIn(pod_, one.remove);
  }
  // What they have taken away with them comes again.
  RunIn(pod_, "ip -6 route replace default via fe80::1 dev eth0");
  Network network = Connected();
  EXPECT_THAT(network.TakeNics(), SizeIs(1));
}

// K12: none fails, whatever many others do with their own.
TEST_F(VmmNetwork, ManyAtOnceDoNotFail) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 5;
  std::vector<UniqueFd> pods;
  std::vector<UniqueFd> far_ends;
  for (int i = 0; i < kThreads; ++i) {
    NetworkTest::SetUp();
    AddRoutedPod();
    pods.push_back(std::move(pod_));
    far_ends.push_back(std::move(outside_));
  }
  std::vector<std::thread> threads;
  for (const UniqueFd& pod : pods) {
    threads.emplace_back([&pod] {
      for (int round = 0; round < kRounds; ++round) {
        auto network = Network::Connect({.netns = Path(pod)});
        ASSERT_TRUE(network) << network.error().message;
        const Status done = network->Disconnect();
        EXPECT_TRUE(done) << done.error().message;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace gantry::vmm
