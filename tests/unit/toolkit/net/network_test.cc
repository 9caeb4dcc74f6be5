// SPDX-License-Identifier: Apache-2.0
//
// A pod's network, with namespaces of the kernel's: `ip` sets them up.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/net/base64.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/network.h>

#include "core/os/fs.h"
#include "tests/unit/toolkit/net/network_fixture.h"

namespace gantry::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST_F(NetworkTest, ReadsWhatThereIs) {
  AddPodNetwork();
  const Result<PodNetwork> network = ReadNetwork(Path(pod_));
  ASSERT_TRUE(network) << network.error().message;
  ASSERT_THAT(network->links, SizeIs(3)) << "not the one that is down";
  EXPECT_TRUE(network->links[0].loopback);
  const PodNetwork::Link& eth0 = network->links[1];
  EXPECT_EQ(eth0.name, "eth0");
  EXPECT_EQ(eth0.mtu, uint32_t{1450});
  EXPECT_EQ(eth0.mac, std::string("\x02\0\0\0\0\x01", kMacBytes));
  std::vector<std::string> addresses;
  for (const PodNetwork::Address& address : eth0.addresses) {
    addresses.push_back(Format("{}/{}", IpText(address.ip), address.prefix));
  }
  EXPECT_THAT(addresses, ElementsAre("10.1.0.2/24", "10.9.0.2/32", "10.1.0.3/24",
                                     "2001:db8:1::2/64", "fe80::1:2/64"));
  ASSERT_THAT(eth0.neighbours, SizeIs(1)) << "not the one that is only reachable";
  EXPECT_EQ(IpText(eth0.neighbours[0].ip), "169.254.1.1");
  const PodNetwork::Link& eth1 = network->links[2];
  EXPECT_EQ(eth1.name, "eth1");
  const auto route = std::ranges::find(eth1.routes, 12, &PodNetwork::Route::prefix);
  ASSERT_NE(route, eth1.routes.end());
  EXPECT_EQ(IpText(route->gateway), "10.2.0.1");
  EXPECT_EQ(route->mtu, uint32_t{1400});
  EXPECT_EQ(std::ranges::count_if(eth1.routes, &PodNetwork::Route::special), 1)
      << "the one of a table of its own";
}

TEST_F(NetworkTest, OfWhoNeedsNoneIsOneForAll) {
  std::vector<ino_t> inodes;
  for (int i = 0; i < 2; ++i) {
    const Result<UniqueFd> netns = EmptyNetns();
    ASSERT_TRUE(netns) << netns.error().message;
    struct stat info{};
    ASSERT_EQ(fstat(netns->get(), &info), 0);
    inodes.push_back(info.st_ino);
    EXPECT_EQ(RunIn(*netns, "ip -br addr | grep -c -v '^lo ' || true"), "0\n");
  }
  EXPECT_EQ(inodes[0], inodes[1]);
  struct stat own{};
  ASSERT_EQ(stat("/proc/self/ns/net", &own), 0);
  EXPECT_NE(inodes[0], own.st_ino);
}

TEST_F(NetworkTest, IsTheSameAfterItWasSaved) {
  AddPodNetwork();
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  const Result<PodNetwork> saved = PodNetwork::FromJson(network.ToJson());
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(*saved, network);
}

TEST_F(NetworkTest, GivesBackWhatItTook) {
  AddPodNetwork();
  const std::string before = State();
  const std::string saved = ReadNetwork(Path(pod_)).value().ToJson();
  const PodNetwork network = PodNetwork::FromJson(saved).value();
  for (int i = 0; i < 2; ++i) {
    const Status taken = TakeAddresses(Path(pod_), network);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(RunIn(pod_, "ip -br addr show dev eth0; ip route show dev eth0").find("10."),
              std::string::npos);
  }
  EXPECT_THAT(RunIn(pod_, "ip -br addr"), HasSubstr("127.0.0.1/8"));
  EXPECT_THAT(ReadNetwork(Path(pod_)).value().links, SizeIs(1));
  for (int i = 0; i < 2; ++i) {
    const Status given = GiveBackAddresses(Path(pod_), network);
    ASSERT_TRUE(given) << given.error().message;
    EXPECT_EQ(StateLike(before), before);
  }
}

TEST_F(NetworkTest, AnInterfaceThatIsDownGetsItsAddressesBack) {
  AddPodNetwork();
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  ASSERT_TRUE(TakeAddresses(Path(pod_), network));
  RunIn(pod_, "ip link set eth0 down; ip link set eth1 down");
  const Status given = GiveBackAddresses(Path(pod_), network);
  EXPECT_TRUE(given) << given.error().message;
  EXPECT_THAT(RunIn(pod_, "ip -br addr show dev eth1"), HasSubstr("10.2.0.2/16"));
}

TEST_F(NetworkTest, AnInterfaceThatIsGoneHasNothingToGiveBack) {
  AddInterface("eth0", "02:00:00:00:00:01");
  RunIn(pod_,
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
        "ip route add default via 10.1.0.1\n"
        "ip route add default via fe80::1 dev eth0\n"
        "ip neigh add 10.1.0.1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n");
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  RunIn(pod_, "ip link del eth0");
  const Status taken = TakeAddresses(Path(pod_), network);
  EXPECT_TRUE(taken) << taken.error().message;
  const Status given = GiveBackAddresses(Path(pod_), network);
  EXPECT_TRUE(given) << given.error().message;
  EXPECT_EQ(OpenSockets(Path(pod_), network, {}).error().sys_errno, ENODEV);
}

/// Its header is no C++. Source: Linux, include/uapi/linux/virtio_net.h.
constexpr size_t kVirtioNetHdrBytes = 10;

/// Sends a frame from outside and says what arrives, without what others have sent.
std::string Arrives(const UniqueFd& outside, const UniqueFd& socket, size_t header) {
  constexpr uint16_t kProtocol = 0x88b5;
  const std::string frame =
      std::string("\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x88\xb5", 14) + std::string(50, 'x');
  const UniqueFd sender = std::move(Netns::Open(Format("/proc/self/fd/{}", outside.get()))
                                        ->Sockets(AF_PACKET, SOCK_RAW, 0, 1)
                                        ->front());
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(kProtocol);
  to.sll_ifindex = std::stoi(RunIn(outside, "ip -o link show eth0 | cut -d: -f1"));
  EXPECT_EQ(sendto(sender.get(), frame.data(), frame.size(), 0,
                   reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
            static_cast<ssize_t>(frame.size()));
  while (true) {
    pollfd readable{socket.get(), POLLIN, 0};
    if (poll(&readable, 1, 10'000) != 1) {
      return "nothing";
    }
    std::string got(4096, '\0');
    got.resize(static_cast<size_t>(recv(socket.get(), got.data(), got.size(), MSG_DONTWAIT)));
    if (got.size() >= header + frame.size() && got.substr(header) == frame) {
      return "the frame";
    }
  }
}

TEST_F(NetworkTest, ItsSocketsReceiveWhatTheInterfaceGets) {
  AddPodNetwork();
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  PacketSocketOptions options;
  options.host_gso = false;
  options.channels = 2;
  const Result<std::vector<UniqueFd>> sockets = OpenSockets(Path(pod_), network, options);
  ASSERT_TRUE(sockets) << sockets.error().message;
  ASSERT_THAT(*sockets, SizeIs(4));
  ASSERT_TRUE(TakeAddresses(Path(pod_), network));
  EXPECT_EQ(Arrives(outside_, (*sockets)[0], 0), "the frame");
  EXPECT_EQ(Arrives(outside_, (*sockets)[1], 0), "the frame");
  const Result<std::vector<UniqueFd>> large = OpenSockets(Path(pod_), network, {});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(Arrives(outside_, large->front(), kVirtioNetHdrBytes), "the frame");
  for (const UniqueFd& socket : *sockets) {
    EXPECT_EQ(fcntl(socket.get(), F_GETFD), FD_CLOEXEC);
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    EXPECT_EQ(getsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &size), 0);
    EXPECT_GE(bytes, kSocketBufferBytes);
  }
}

TEST_F(NetworkTest, TellsAnotherNamespaceFromTheOneThatWasRead) {
  AddPodNetwork();
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  EXPECT_EQ(OpenSockets(Path(outside_), network, {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(TakeAddresses(Path(outside_), network).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(GiveBackAddresses(Path(outside_), network).error().message,
            Format("give the addresses back to '{}': it is another namespace than the one that was "
                   "read",
                   Path(outside_)));
}

TEST_F(NetworkTest, RefusesTheHostsNetwork) {
  const Error error = ReadNetwork("/proc/self/ns/net").error();
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.message,
            "read the network of '/proc/self/ns/net': it is the host's own network, which a "
            "sandbox must not take over");
}

TEST_F(NetworkTest, RefusesWhatIsNoNamespaceOfANetwork) {
  const os::TempDir folder = os::TempDir::Create().value();
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(ReadNetwork(fifo).error().code, Code::kInvalidArgument);
  EXPECT_EQ(ReadNetwork("/proc/self/ns/uts").error().code, Code::kInvalidArgument);
  const Error missing = ReadNetwork(folder.path() + "/none").error();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, StartsWith("read the network of '" + folder.path() + "/none': "));
}

TEST_F(NetworkTest, RefusesMoreThanItCanKeep) {
  AddInterface("eth0", "02:00:00:00:00:01");
  RunIn(pod_,
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "i=0; while [ $i -lt 2000 ]; do\n"
        "  echo route add 172.16.$((i / 250)).$((i % 250)) dev eth0; i=$((i + 1))\n"
        "done | ip -batch -\n");
  const Error error = ReadNetwork(Path(pod_)).error();
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("1 interfaces, 1 addresses, 2001 routes and 0 permanent "
                                       "neighbours are more than fit into 49152 bytes"));
  RunIn(pod_,
        "i=2000; while [ $i -lt 30000 ]; do\n"
        "  echo route add 172.$((16 + i / 62500)).$((i / 250 % 250)).$((i % 250)) dev eth0\n"
        "  i=$((i + 1))\n"
        "done | ip -batch -\n");
  EXPECT_THAT(ReadNetwork(Path(pod_)).error().message,
              HasSubstr("routes: there are more than 1048576 bytes of them"));
}

TEST_F(NetworkTest, KeepsSomeHundredsOfRoutes) {
  AddInterface("eth0", "02:00:00:00:00:01");
  RunIn(pod_,
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "i=0; while [ $i -lt 400 ]; do\n"
        "  echo route add 172.16.$((i / 250)).$((i % 250)) via 10.1.0.1 dev eth0; i=$((i + 1))\n"
        "done | ip -batch -\n");
  const std::string before = State();
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  ASSERT_TRUE(TakeAddresses(Path(pod_), network));
  ASSERT_TRUE(GiveBackAddresses(Path(pod_), network));
  EXPECT_EQ(State(), before);
}

TEST(PodNetworkTest, WithoutANamespaceThereIsNothing) {
  const PodNetwork network = ReadNetwork("").value();
  EXPECT_FALSE(network.HasInterfaces());
  EXPECT_THAT(network.links, IsEmpty());
  EXPECT_THAT(OpenSockets("", network, {}).value(), IsEmpty());
  EXPECT_TRUE(TakeAddresses("", network));
  EXPECT_TRUE(GiveBackAddresses("", network));
  EXPECT_EQ(PodNetwork::FromJson(network.ToJson()).value(), network);
}

TEST(PodNetworkTest, RefusesWhatIsNoneThatWasSaved) {
  const std::string before = R"({"netns":1,"links":[{"name":"a","index":1,"mtu":1,"mac":"",)"
                             R"("loopback":false,"gso_max_bytes":0,"addresses":[)";
  const std::string behind = R"(],"routes":[],"neighbours":[]}]})";
  EXPECT_TRUE(PodNetwork::FromJson(before + behind));
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string(R"({"netns":1})"), before + "1" + behind,
        before + R"("?")" + behind, before + R"("AAAA")" + behind, before}) {
    EXPECT_EQ(PodNetwork::FromJson(text).error().code, Code::kDataLoss) << text;
  }
}

/// One attribute, without what aligns the next.
std::string Attribute(uint16_t size, uint16_t type, const std::string& value) {
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         std::string(reinterpret_cast<const char*>(&type), sizeof(type)) + value;
}

TEST(AttributesTest, StayWithinTheMessage) {
  const std::string name = Attribute(7, 3, std::string("lo\0\0", 4));
  const std::string number = Attribute(8, 4, std::string("\x01\0\0\0", 4));
  EXPECT_EQ(Attributes(name + number).Find(3), std::string("lo\0", 3));
  EXPECT_EQ(Attributes(name + number).Number(4), uint32_t{1});
  EXPECT_EQ(Attributes(name + number).Number(3), 0);
  EXPECT_EQ(Attributes(name + number).Find(5), "");
  for (const std::string& broken :
       {Attribute(9, 4, "1234"), Attribute(3, 4, "1234"), Attribute(0, 4, "1234"),
        std::string("\x08\0\4", 3), Attribute(7, 3, "123"), std::string()}) {
    EXPECT_EQ(Attributes(broken).Find(4), "");
  }
}

TEST(Base64, IsWhatGoWrites) {
  const std::array<std::pair<std::string, std::string>, 5> all = {
      {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd\xfc", "//79/A=="}}};
  for (const auto& [bytes, text] : all) {
    EXPECT_EQ(ToBase64(bytes), text);
    EXPECT_EQ(FromBase64(text), bytes);
  }
  EXPECT_EQ(FromBase64("Zm9"), std::nullopt);
  EXPECT_EQ(FromBase64("Zm9-"), std::nullopt);
}

}  // namespace
}  // namespace gantry::net
