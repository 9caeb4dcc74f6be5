// SPDX-License-Identifier: Apache-2.0
//
// A pod's network, with namespaces of the kernel's: `ip` sets them up.
#include "plugins/gvisor/network/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "plugins/gvisor/network/base64.h"
#include "plugins/gvisor/network/netlink.h"
#include "plugins/gvisor/network/netns.h"

namespace gantry::gvisor {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

UniqueFd NewNetns() {
  UniqueFd netns;
  std::thread([&netns] {
    if (unshare(CLONE_NEWNET) == 0) {
      netns.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
  }).join();
  return netns;
}

/// What the shell's command writes, in the namespace.
std::string RunIn(const UniqueFd& netns, const std::string& command) {
  std::string output;
  std::thread([&] {
    ASSERT_EQ(setns(netns.get(), CLONE_NEWNET), 0);
    FILE* const pipe = popen(("set -e\n" + command).c_str(), "re");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 4096> part{};
    for (size_t got = 1; got > 0; output.append(part.data(), got)) {
      got = fread(part.data(), 1, part.size(), pipe);
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
  }).join();
  return output;
}

json Parsed(const std::string& text) { return json::parse(text, nullptr, false); }

class NetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make network namespaces";
    }
    pod_ = NewNetns();
    outside_ = NewNetns();
    ASSERT_TRUE(pod_ && outside_) << "no network namespaces here";
  }

  /// An interface without a link-local address of its own, which is not the same each time.
  void AddInterface(const std::string& name, const std::string& mac, uint32_t mtu = 1500) {
    RunIn(pod_,
          Format("ip link add name {0} address {1} mtu {2} type veth peer name {0} netns {3}\n"
                 "ip link set {0} addrgenmode none\n"
                 "ip link set {0} up\n",
                 name, mac, mtu, Path(outside_)));
    RunIn(outside_, Format("ip link set {0} up\n", name));
  }

  /// Two interfaces with something of everything, a third one that is down.
  void AddPodNetwork() {
    AddInterface("eth0", "02:00:00:00:00:01", 1450);
    AddInterface("eth1", "02:00:00:00:00:02");
    AddInterface("eth2", "02:00:00:00:00:03");
    RunIn(pod_,
          "ip link set lo up\n"
          "ip addr add 10.1.0.2/24 dev eth0\n"
          "ip addr add 10.1.0.3/24 dev eth0\n"
          "ip addr add 10.9.0.2 peer 10.9.0.1 dev eth0\n"
          "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
          "ip addr add fe80::1:2/64 dev eth0 nodad\n"
          "ip addr add 10.2.0.2/16 metric 50 dev eth1\n"
          "ip addr add 10.3.0.2/16 dev eth2\n"
          "ip link set eth2 down\n"
          "ip route add 169.254.1.1 dev eth0 scope link\n"
          "ip route add default via 169.254.1.1 dev eth0\n"
          "ip route add default via 10.2.0.1 dev eth1 metric 100\n"
          "ip route add 10.96.0.0/12 via 10.2.0.1 mtu 1400\n"
          "ip route add blackhole 10.97.0.0/16\n"
          "ip route add 10.98.0.0/16 dev eth1 table 100\n"
          "ip route add 10.99.0.0/16 nexthop via 10.1.0.1 nexthop via 10.2.0.1\n"
          "ip route add default via fe80::1 dev eth0\n"
          "ip neigh add 169.254.1.1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n"
          "ip neigh add 10.1.0.7 lladdr 02:00:00:00:00:bb dev eth0 nud reachable\n"
          // The kernel adds these a moment later.
          "for i in $(seq 500); do\n"
          "  [ \"$(ip -6 route show table local dev eth0 | grep -c ^local)\" != 2 ] || break\n"
          "done\n");
  }

  /// All that may change, as `ip` shows it.
  std::string State() {
    return RunIn(pod_,
                 "ip -j addr; ip -j -4 route show table all; ip -j -6 route show table all\n"
                 "ip -j neigh show nud permanent\n");
  }

  /// As soon as it is that; where it does not become that, as it is.
  std::string StateLike(const std::string& expected) {
    constexpr int kTries = 500;
    std::string state = State();
    for (int i = 0; i < kTries && state != expected; ++i) {
      state = State();
    }
    return state;
  }

  /// For a process that is not this one.
  static std::string Path(const UniqueFd& netns) {
    return Format("/proc/{}/fd/{}", getpid(), netns.get());
  }

  UniqueFd pod_;
  UniqueFd outside_;
};

TEST_F(NetworkTest, ReadsWhatThereIs) {
  AddPodNetwork();
  const Result<PodNetwork> network = ReadNetwork(Path(pod_));
  ASSERT_TRUE(network) << network.error().message;
  const json args = Parsed(NetworkArgs(*network, {}));
  EXPECT_EQ(args["LoopbackLinks"], Parsed(R"([{
      "Name": "lo", "GVisorGRO": false,
      "Addresses": [{"Address": "127.0.0.1", "PrefixLen": 8}, {"Address": "::1", "PrefixLen": 128}],
      "Routes": [
        {"Destination": {"IP": "127.0.0.0", "Mask": "/wAAAA=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "::1", "Mask": "/////////////////////w=="},
         "Gateway": "", "MTU": 0}]}])"));
  ASSERT_THAT(args["FDBasedLinks"], SizeIs(2));
  json eth0 = Parsed(R"({
      "Name": "eth0", "MTU": 1450, "LinkAddress": "AgAAAAAB", "QDisc": 1,
      "Addresses": [
        {"Address": "10.1.0.2", "PrefixLen": 24}, {"Address": "10.9.0.2", "PrefixLen": 32},
        {"Address": "10.1.0.3", "PrefixLen": 24}, {"Address": "2001:db8:1::2", "PrefixLen": 64},
        {"Address": "fe80::1:2", "PrefixLen": 64}],
      "Routes": [
        {"Destination": {"IP": "10.1.0.0", "Mask": "////AA=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "10.9.0.1", "Mask": "/////w=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "169.254.1.1", "Mask": "/////w=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "2001:db8:1::", "Mask": "//////////8AAAAAAAAAAA=="},
         "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "fe80::", "Mask": "//////////8AAAAAAAAAAA=="},
         "Gateway": "", "MTU": 0}],
      "Neighbors": [{"IP": "169.254.1.1", "HardwareAddr": "AgAAAACq"}],
      "GSOMaxSize": 65536, "GVisorGSOEnabled": false, "GVisorGRO": false,
      "TXChecksumOffload": false, "RXChecksumOffload": true,
      "NumChannels": 1, "ProcessorsPerChannel": 0})");
  eth0["InterfaceIndex"] = args["FDBasedLinks"][0]["InterfaceIndex"];
  EXPECT_EQ(args["FDBasedLinks"][0], eth0);
  EXPECT_EQ(args["FDBasedLinks"][1]["Name"], "eth1");
  EXPECT_EQ(args["FDBasedLinks"][1]["MTU"], 1500);
  EXPECT_EQ(args["FDBasedLinks"][1]["Routes"], Parsed(R"([
      {"Destination": {"IP": "10.2.0.0", "Mask": "//8AAA=="}, "Gateway": "", "MTU": 0},
      {"Destination": {"IP": "10.96.0.0", "Mask": "//AAAA=="},
       "Gateway": "10.2.0.1", "MTU": 1400}])"));
  EXPECT_EQ(args["Defaultv4Gateway"], Parsed(R"({"Name": "eth0", "Route": {
      "Destination": {"IP": "0.0.0.0", "Mask": "AAAAAA=="},
      "Gateway": "169.254.1.1", "MTU": 0}})"));
  EXPECT_EQ(args["Defaultv6Gateway"], Parsed(R"({"Name": "eth0", "Route": {
      "Destination": {"IP": "::", "Mask": "AAAAAAAAAAAAAAAAAAAAAA=="},
      "Gateway": "fe80::1", "MTU": 0}})"));
}

TEST_F(NetworkTest, ALinkHasTheLeastMtuOfItsRoutesWhereTheyHaveNone) {
  AddPodNetwork();
  const Result<PodNetwork> network = ReadNetwork(Path(pod_));
  ASSERT_TRUE(network) << network.error().message;
  NetworkOptions options;
  options.route_mtu = false;
  const json args = Parsed(NetworkArgs(*network, options));
  ASSERT_THAT(args["FDBasedLinks"], SizeIs(2));
  EXPECT_EQ(args["FDBasedLinks"][0]["MTU"], 1450) << "of one whose routes say nothing";
  EXPECT_EQ(args["FDBasedLinks"][1]["MTU"], 1400);
}

TEST_F(NetworkTest, OptionsAreTheSentrysFields) {
  AddInterface("eth0", "02:00:00:00:00:01");
  RunIn(pod_,
        "ip addr add 10.1.0.2/24 dev eth0\n"
        "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n");
  const PodNetwork network = ReadNetwork(Path(pod_)).value();
  NetworkOptions options;
  options.host_gso = false;
  options.gvisor_gro = true;
  options.tx_checksum_offload = true;
  options.rx_checksum_offload = false;
  options.qdisc = QueueingDiscipline::kNone;
  options.channels = 3;
  options.ipv6 = false;
  const json args = Parsed(NetworkArgs(network, options));
  const json& link = args["FDBasedLinks"][0];
  EXPECT_EQ(link["GSOMaxSize"], 65536);
  EXPECT_EQ(link["GVisorGSOEnabled"], true);
  EXPECT_EQ(link["GVisorGRO"], true);
  EXPECT_EQ(link["TXChecksumOffload"], true);
  EXPECT_EQ(link["RXChecksumOffload"], false);
  EXPECT_EQ(link["QDisc"], 0);
  EXPECT_EQ(link["NumChannels"], 3);
  EXPECT_EQ(link["Addresses"], Parsed(R"([{"Address": "10.1.0.2", "PrefixLen": 24}])"));
  EXPECT_THAT(link["Routes"], SizeIs(1));
  EXPECT_EQ(args["LoopbackLinks"][0]["Addresses"],
            Parsed(R"([{"Address": "127.0.0.1", "PrefixLen": 8}])"));
  options.gvisor_gso = false;
  EXPECT_EQ(Parsed(NetworkArgs(network, options))["FDBasedLinks"][0]["GSOMaxSize"], 0);
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
  EXPECT_EQ(Parsed(NetworkArgs(ReadNetwork(Path(pod_)).value(), {})),
            Parsed(NetworkArgs(network, {})));
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
  NetworkOptions options;
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

TEST(PodNetworkTest, WithoutANamespaceThereIsALoopback) {
  const PodNetwork network = ReadNetwork("").value();
  EXPECT_FALSE(network.HasInterfaces());
  EXPECT_EQ(Parsed(NetworkArgs(network, {})), Parsed(R"({"FDBasedLinks": [], "LoopbackLinks": [{
      "Name": "lo", "GVisorGRO": false,
      "Addresses": [{"Address": "127.0.0.1", "PrefixLen": 8}, {"Address": "::1", "PrefixLen": 128}],
      "Routes": [
        {"Destination": {"IP": "127.0.0.0", "Mask": "/wAAAA=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "::1", "Mask": "/////////////////////w=="},
         "Gateway": "", "MTU": 0}]}]})"));
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
}  // namespace gantry::gvisor
