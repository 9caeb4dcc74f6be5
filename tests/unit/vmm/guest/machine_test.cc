// SPDX-License-Identifier: Apache-2.0
//
// What the agent does to its machine, as far as it can be looked at without one: the messages to
// the kernel, and what is found in trees of files.
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/pod_network.h>

#include "plugins/vmm/guest/devices.h"
#include "plugins/vmm/guest/network.h"
#include "plugins/vmm/guest/online.h"
#include "plugins/vmm/guest/set_up.h"

namespace gantry::vmm::guest {
namespace {

const std::string kV4("\x0a\x00\x00\x02", 4);
const std::string kV6 = std::string("\xfd\x00", 2) + std::string(13, '\0') + "\x02";

protocol::Route RouteTo(std::string destination, uint32_t prefix, std::string gateway) {
  protocol::Route route;
  route.interface = "eth0";
  route.destination = std::move(destination);
  route.prefix = prefix;
  route.gateway = std::move(gateway);
  return route;
}

// What the toolkit reads of it is what was to be said.
TEST(GuestNetwork, RoutesAreReadBackAsTheyWere) {
  const auto change = RouteChange(7, RouteTo(kV4, 24, kV4));
  ASSERT_TRUE(change);
  const auto route = net::PodNetwork::Route::From(change->message);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->interface, 7);
  EXPECT_EQ(route->destination, kV4);
  EXPECT_EQ(route->prefix, 24);
  EXPECT_EQ(route->gateway, kV4);
}

// K10: an IPv6 default route without a gateway is one of IPv6.
TEST(GuestNetwork, ADefaultRouteWithoutAGatewayKeepsItsFamily) {
  for (const size_t bytes : {net::kV4Bytes, net::kV6Bytes}) {
    const auto change = RouteChange(7, RouteTo(std::string(bytes, '\0'), 0, ""));
    ASSERT_TRUE(change);
    const auto parsed = net::Parse<rtmsg>(change->message);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->header.rtm_family, bytes == net::kV4Bytes ? AF_INET : AF_INET6);
    EXPECT_EQ(parsed->header.rtm_dst_len, 0);
    EXPECT_TRUE(parsed->attributes.Find(RTA_DST).empty());
    EXPECT_TRUE(parsed->attributes.Find(RTA_GATEWAY).empty());
  }
}

TEST(GuestNetwork, RoutesComeBeforeThoseThatNeedThem) {
  const auto order = InOrder({RouteTo(std::string(4, '\0'), 0, kV4), RouteTo(kV4, 32, "")});
  EXPECT_TRUE(order[0].gateway.empty());
  EXPECT_EQ(order[1].gateway, kV4);
}

TEST(GuestNetwork, AddressesAndNeighboursAreReadBackAsTheyWere) {
  for (const std::string& ip : {kV4, kV6}) {
    const auto change = AddressChange(3, "eth0", {.ip = ip, .prefix = 20});
    ASSERT_TRUE(change);
    const auto address = net::PodNetwork::Address::From(change->message);
    ASSERT_TRUE(address);
    EXPECT_EQ(address->ip, ip);
    EXPECT_EQ(address->prefix, 20);
    EXPECT_EQ(address->interface, 3);
  }
  const auto change = NeighbourChange(3, {.interface = "eth0", .ip = kV4, .mac = "sixmac"});
  ASSERT_TRUE(change);
  const auto neighbour = net::PodNetwork::Neighbour::From(change->message);
  ASSERT_TRUE(neighbour);
  EXPECT_EQ(neighbour->ip, kV4);
  EXPECT_EQ(neighbour->mac, "sixmac");
}

TEST(GuestNetwork, WhatCannotBeIsRefusedByName) {
  EXPECT_EQ(AddressChange(1, "eth0", {.ip = "abc", .prefix = 8}).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(AddressChange(1, "eth0", {.ip = kV4, .prefix = 33}).error().message,
            "set address 10.0.0.2/33 of 'eth0': an address of 4 bytes with prefix 33");
  EXPECT_TRUE(RouteChange(1, RouteTo(kV4, 8, kV6))) << "IPv4 by a gateway of IPv6";
  EXPECT_FALSE(RouteChange(1, RouteTo(kV6, 8, kV4)));
  EXPECT_FALSE(RuleChange("short"));
  EXPECT_FALSE(NeighbourChange(1, {.interface = "eth0", .ip = kV4, .mac = "five5"}));
  for (const char* name : {"", "a/b", "a b", "..", "sixteen-bytes-ab"}) {
    EXPECT_FALSE(IsInterfaceName(name)) << name;
  }
  EXPECT_TRUE(IsInterfaceName("eth0"));
}

TEST(GuestClock, IsSlewedWhereItIsALittleWrongAndStepsElse) {
  constexpr int64_t kMs = 1'000'000;
  EXPECT_EQ(ChangeFor(kMs / 2, false), ClockChange::kNone);
  EXPECT_EQ(ChangeFor(50 * kMs, false), ClockChange::kSlew);
  EXPECT_EQ(ChangeFor(-50 * kMs, false), ClockChange::kSlew);
  EXPECT_EQ(ChangeFor(200 * kMs, false), ClockChange::kStep);
  EXPECT_EQ(ChangeFor(-200 * kMs, false), ClockChange::kStep);
  EXPECT_EQ(ChangeFor(0, true), ClockChange::kStep);
  EXPECT_EQ(ChangeFor(std::numeric_limits<int64_t>::min(), false), ClockChange::kStep);
}

TEST(GuestSetUp, WritesFilesBelowRunAlone) {
  EXPECT_TRUE(CheckFilePath("/run/gantry/resolv.conf"));
  for (const char* path : {"/etc/passwd", "/run", "/run/", "/run/../etc/x", "run/x", "/run//x"}) {
    EXPECT_FALSE(CheckFilePath(path)) << path;
  }
  EXPECT_EQ(*SettingPath("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
  EXPECT_EQ(*SettingPath("net/ipv4/conf/eth0.1/forwarding"),
            "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
  EXPECT_EQ(*SettingPath("net.ipv4.conf.eth0/1.forwarding"),
            "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
  for (const char* name : {"", "..", "a/../b", "/a"}) {
    EXPECT_FALSE(SettingPath(name)) << name;
  }
}

class GuestTrees : public testing::Test {
 protected:
  GuestTrees() {
    char name[] = "/tmp/gantry-trees-XXXXXX";
    root_ = ::mkdtemp(name);
  }

  ~GuestTrees() override { IgnoreError(RemoveTree(root_), "the next one has another name"); }

  void Put(const std::string& path, const std::string& text) {
    for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1)) {
      ::mkdir((root_ + "/" + path.substr(0, at)).c_str(), 0755);
    }
    ASSERT_TRUE(WriteFile(root_ + "/" + path, text, 0644));
  }

  std::string root_;
};

TEST_F(GuestTrees, DisksAreFoundByTheirSerial) {
  Put("vda/serial", "layer-1\n");
  Put("vdb/serial", "a-serial-of-twenty-b\n");
  Put("vdc/size", "8");
  EXPECT_EQ(*FindDisk("layer-1", root_), "/dev/vda");
  EXPECT_EQ(*FindDisk("a-serial-of-twenty-bytes-and-more", root_), "/dev/vdb");
  EXPECT_EQ(FindDisk("layer", root_).error().code, Code::kNotFound);
}

TEST_F(GuestTrees, WhatWasPluggedInIsSwitchedOn) {
  Put("cpu/cpu0/topology", "");
  Put("cpu/cpu1/online", "0\n");
  Put("cpu/cpu2/online", "1\n");
  Put("cpu/cpufreq/online", "0\n");
  Put("memory/memory0/state", "online\n");
  Put("memory/memory9/state", "offline\n");
  Put("memory/power/state", "offline\n");
  EXPECT_EQ(*SwitchOn(root_), 3U);
  EXPECT_TRUE(ReadFile(root_ + "/cpu/cpu1/online", 16)->starts_with("1"));
  EXPECT_EQ(*ReadFile(root_ + "/cpu/cpufreq/online", 16), "0\n");
  EXPECT_TRUE(ReadFile(root_ + "/memory/memory9/state", 16)->starts_with("online"));
  EXPECT_EQ(*ReadFile(root_ + "/memory/power/state", 16), "offline\n");
}

}  // namespace
}  // namespace gantry::vmm::guest
