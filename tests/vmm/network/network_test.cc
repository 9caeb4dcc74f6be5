// SPDX-License-Identifier: Apache-2.0
//
// A pod on a bridge of both families, as CNI's bridge plugin makes it, and a real guest in its
// place: another pod of the same bridge talks to it and is talked to.
#include "plugins/vmm/network/network.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>

#include "plugins/vmm/network/guest_ports.h"
#include "plugins/vmm/network/port_forwarding.h"
#include "tests/unit/toolkit/forward/forward_fixture.h"
#include "tests/unit/toolkit/net/network_fixture.h"
#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/agent/guest.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kBundle = "/run/gantry/bundle";

/// For JSON.
std::string Escaped(const std::string& script) {
  std::string text;
  for (const char c : script) {
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

/// A container in the guest's own network, which is the pod's.
std::string SpecOf(const std::string& script) {
  return Format(
      R"({{"ociVersion": "1.0.2", "root": {{"path": "rootfs"}},
          "process": {{"args": ["/bin/sh", "-c", "{0}"], "env": ["PATH=/bin"], "cwd": "/",
                       "user": {{"uid": 0, "gid": 0}},
                       "capabilities": {{"bounding": {1}, "effective": {1}, "permitted": {1}}}}},
          "mounts": [{{"destination": "/proc", "type": "proc", "source": "proc"}},
                     {{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}}],
          "linux": {{"namespaces": [{{"type": "pid"}}, {{"type": "mount"}}]}}}})",
      Escaped(script), R"(["CAP_NET_RAW", "CAP_NET_BIND_SERVICE", "CAP_DAC_OVERRIDE"])");
}

/// All namespaces, and one guest for all tests.
class NetworkOfGuest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    why_ = "";
    MakeBridge();
    before_ = PodsTraces();
    auto connected = Network::Connect({.netns = PathOf(pod_)});
    if (!connected) {
      why_ = connected.error().message;
      return;
    }
    network_ = std::make_unique<Network>(std::move(*connected));
    auto booted = RealGuest::Boot(network_->TakeNics());
    if (!booted) {  // Without an image: `./run test vmm` makes it.
      why_ = booted.error().message;
      return;
    }
    guest_ = std::move(*booted);
    if (const Status ready = MakeReady(); !ready) {
      why_ = ready.error().message + guest_->Words();
    }
  }

  static void TearDownTestSuite() {
    guest_.reset();
    if (network_) {
      const Status done = network_->Disconnect();
      EXPECT_TRUE(done) << done.error().message;
      EXPECT_EQ(PodsTraces(), before_) << "the pod is not as it was";
    }
    network_.reset();
    for (UniqueFd* const netns : {&node_, &pod_, &peer_}) {
      netns->reset();
    }
  }

  void SetUp() override { ASSERT_EQ(why_, ""); }

  void TearDown() override {
    if (HasFailure() && guest_) {
      std::fprintf(stderr, "--- console:\n%s\n", guest_->Words().c_str());
    }
  }

  static std::string PathOf(const UniqueFd& netns) {
    return Format("/proc/{}/fd/{}", ::getpid(), netns.get());
  }

  static std::string PodsTraces() {
    return net::RunIn(pod_, "ip addr; ip route; ip -6 route; tc qdisc show");
  }

  static void MakeBridge() {
    node_ = net::NewNetns();
    pod_ = net::NewNetns();
    peer_ = net::NewNetns();
    net::RunIn(node_,
               "ip link add name br0 type bridge forward_delay 0\n"
               "ip link set br0 up\n"
               "ip addr add 10.88.0.1/16 dev br0; ip addr add fd00:88::1/64 dev br0 nodad\n");
    AddPod(pod_, 5);
    AddPod(peer_, 9);
  }

  static void AddPod(const UniqueFd& netns, int number) {
    net::RunIn(netns, Format("ip link set lo up\n"
                             "ip link add name eth0 address 02:00:00:00:00:0{0} type veth peer "
                             "name veth{0} netns {1}\n"
                             "ip link set eth0 up\n"
                             "ip addr add 10.88.0.{0}/16 brd 10.88.255.255 dev eth0\n"
                             "ip addr add fd00:88::{0}/64 dev eth0 nodad\n",
                             number, PathOf(node_)));
    net::RunIn(node_, Format("ip link set veth{0} master br0; ip link set veth{0} up\n", number));
    net::RunIn(netns,
               "ip route add default via 10.88.0.1 dev eth0\n"
               "ip -6 route add default via fd00:88::1 dev eth0\n"
               // The kernel's own address is looked for twice in the first second.
               "for i in $(seq 3000); do ip -6 addr show tentative | grep -q . || break; done\n");
  }

  static Status MakeReady() {
    GANTRY_CHECK_OK(
        guest_->Call(protocol::Attach{.mounts = {{.type = "ext4",
                                                  .source = {},
                                                  .serial = kRootDisk,
                                                  .target = std::string(kBundle) + "/rootfs",
                                                  .options = {}}},
                                      .wait_ms = 60'000}));
    protocol::SetUp set_up;
    network_->FillSetUp(set_up);
    GANTRY_CHECK_OK(guest_->Call(set_up));
    return {};
  }

  struct Made {
    std::string id;
    UniqueFd out;
  };

  static Made Run(const std::string& script) {
    static int count = 0;
    Made made{.id = Format("c{}", ++count), .out = {}};
    protocol::Streams streams;
    streams.output = guest_->Token();
    streams.error = guest_->Token();
    const auto created = guest_->Call(protocol::CreateContainer{
        .container = made.id, .bundle = kBundle, .spec_json = SpecOf(script), .streams = streams});
    EXPECT_TRUE(created) << created.error().message;
    made.out = guest_->Stream(streams.output).value_or(UniqueFd());
    const auto started = guest_->Call(protocol::Start{.container = made.id, .exec = ""});
    EXPECT_TRUE(started) << started.error().message;
    return made;
  }

  static void Delete(const Made& made) {
    const auto gone = guest_->Call(protocol::Delete{.container = made.id, .exec = ""});
    EXPECT_TRUE(gone) << gone.error().message;
  }

  /// What a script of the guest's says until it has ended.
  static std::string Says(const std::string& script) {
    const Made made = Run(script);
    std::string text = ReadStream(made.out);
    Delete(made);
    return text;
  }

  /// A server of the guest's at that port of all its addresses.
  static Made Serve(int port) {
    Made made =
        Run(Format("busybox mkdir -p /tmp/www; echo served >/tmp/www/index.html\n"
                   "busybox httpd -f -p {0} -h /tmp/www &\n"
                   "until busybox wget -q -O /dev/null http://127.0.0.1:{0}/index.html\n"
                   "do :; done; echo ready; wait",
                   port));
    EXPECT_EQ(ReadUntil(made.out, "ready\n"), "ready\n");
    return made;
  }

  static std::string Get(const UniqueFd& netns, const std::string& address, uint16_t port) {
    const auto [client, failed] = forward::ConnectIn(&netns, address, port);
    if (failed != 0) {
      return Format("connect to {}: {}", address, ErrnoName(failed));
    }
    EXPECT_TRUE(forward::SendText(client, "GET /index.html HTTP/1.0\r\n\r\n"));
    return forward::ReadAll(client);
  }

  static UniqueFd node_;
  static UniqueFd pod_;
  static UniqueFd peer_;
  static std::string before_;
  static std::unique_ptr<Network> network_;
  static std::unique_ptr<RealGuest> guest_;
  static std::string why_;
};

UniqueFd NetworkOfGuest::node_;
UniqueFd NetworkOfGuest::pod_;
UniqueFd NetworkOfGuest::peer_;
std::string NetworkOfGuest::before_;
std::unique_ptr<Network> NetworkOfGuest::network_;
std::unique_ptr<RealGuest> NetworkOfGuest::guest_;
std::string NetworkOfGuest::why_ = "not set up";

TEST_F(NetworkOfGuest, IsThePods) {
  EXPECT_THAT(
      Says("ip addr show eth0; ip route; ip -6 route"),
      AllOf(HasSubstr("link/ether 02:00:00:00:00:05"), HasSubstr("inet 10.88.0.5/16"),
            HasSubstr("inet6 fd00:88::5/64"), HasSubstr("default via 10.88.0.1 dev eth0"),
            HasSubstr("10.88.0.0/16 dev eth0"), HasSubstr("default via fd00:88::1 dev eth0")));
}

TEST_F(NetworkOfGuest, IsPingedAndPings) {
  net::RunIn(peer_, "busybox ping -c 2 -W 60 10.88.0.5 >/dev/null");
  net::RunIn(peer_, "busybox ping6 -c 2 -W 60 fd00:88::5 >/dev/null");
  for (const char* ping : {"ping", "ping6"}) {
    for (const char* last : {"1", "9"}) {
      const std::string to =
          (std::string(ping) == "ping" ? "10.88.0." : "fd00:88::") + std::string(last);
      EXPECT_THAT(Says(Format("busybox {} -c 2 -W 60 {} >/dev/null && echo heard", ping, to)),
                  HasSubstr("heard"))
          << to;
    }
  }
}

TEST_F(NetworkOfGuest, ServesOthers) {
  const Made server = Serve(8080);
  for (const UniqueFd* const from : {&peer_, &node_}) {
    for (const char* address : {"10.88.0.5", "fd00:88::5"}) {
      EXPECT_THAT(Get(*from, address, 8080), HasSubstr("served")) << address;
    }
  }
  Delete(server);
}

TEST_F(NetworkOfGuest, AsksOthers) {
  for (const char* address : {"10.88.0.9", "fd00:88::9"}) {
    const auto [listener, port] = forward::ListenIn(&peer_, address);
    ASSERT_TRUE(listener) << address;
    std::thread server([&listener] {
      const UniqueFd client = forward::AcceptFrom(listener);
      EXPECT_EQ(forward::ReadSome(client, 9), "question\n");
      EXPECT_TRUE(forward::SendText(client, "answer\n"));
    });
    EXPECT_THAT(Says(Format("echo question | busybox nc {} {}", address, port)),
                HasSubstr("answer"));
    // A guest that has not come would be waited for without end.
    ::shutdown(listener.get(), SHUT_RDWR);
    server.join();
  }
}

TEST_F(NetworkOfGuest, ItsPortsAreForwarded) {
  const Made server = Serve(8081);
  FakeSandboxContext context;
  const GuestPorts ports{.ask = [](const protocol::Forward& request, Deadline deadline) -> Status {
                           GANTRY_CHECK_OK(guest_->client().Call(request, deadline));
                           return {};
                         },
                         .streams = &guest_->streams(),
                         .limit = std::chrono::seconds(60)};
  const auto forwarding = ForwardPorts(
      context, {.netns = PathOf(pod_), .ports = ports, .cgroups = {}, .program = GANTRY_FORWARD});
  ASSERT_TRUE(forwarding) << testing::PrintToString(context.log);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Get(pod_, "127.0.0.1", 8081), HasSubstr("served"));
  }
  // Nobody is there.
  EXPECT_EQ(Get(pod_, "127.0.0.1", 8082), "");
  EXPECT_TRUE(context.WaitForLog("connect: ECONNREFUSED", std::chrono::seconds(60)));
  EXPECT_TRUE(forward::PortForward::End(context, forwarding, std::chrono::seconds(20)));
  Delete(server);
}

TEST_F(NetworkOfGuest, ItsTrafficIsCounted) {
  const Made made = Run("busybox ping -c 3 10.88.0.1 >/dev/null; echo end; sleep 1000");
  EXPECT_EQ(ReadUntil(made.out, "end\n"), "end\n");
  const auto inside = guest_->Call(protocol::Stats{.container = made.id});
  ASSERT_TRUE(inside) << inside.error().message;
  ASSERT_EQ(inside->interfaces.size(), 1U);
  EXPECT_EQ(inside->interfaces[0].name, "eth0");
  EXPECT_GE(inside->interfaces[0].sent_packets, 3U);
  const auto outside = network_->Interfaces();
  ASSERT_TRUE(outside) << outside.error().message;
  ASSERT_EQ(outside->size(), 1U);
  EXPECT_EQ((*outside)[0].name, "eth0");
  EXPECT_GE((*outside)[0].sent.packets, inside->interfaces[0].sent_packets);
  EXPECT_GE((*outside)[0].received.packets, 3U);
  Delete(made);
}

}  // namespace
}  // namespace gantry::vmm
