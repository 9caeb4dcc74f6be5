// SPDX-License-Identifier: Apache-2.0
//
// What a guest is refused, also of interfaces that the kernel of the tests does not know.
#include "plugins/vmm/network/takeover.h"

#include <net/if.h>
#include <net/if_arp.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

namespace gantry::vmm {
namespace {

using net::LinkInfo;
using net::PodNetwork;
using testing::HasSubstr;

/// A pod with these interfaces beside its loopback.
struct PodOf {
  PodNetwork network;
  std::vector<LinkInfo> links;

  explicit PodOf(const std::vector<LinkInfo>& all) : links(all) {
    Add("lo", 1, "").loopback = true;
    for (const LinkInfo& link : all) {
      Add(link.name, link.index, link.mac);
    }
  }

  PodNetwork::Link& Add(const std::string& name, int32_t index, const std::string& mac) {
    PodNetwork::Link& link = network.links.emplace_back();
    link.name = name;
    link.index = index;
    link.mac = mac;
    return link;
  }

  Status Check() const { return CheckTakeover(network, links); }
};

LinkInfo VethOf(int32_t index) {
  LinkInfo link;
  link.name = Format("eth{}", index);
  link.index = index;
  link.kind = "veth";
  link.type = ARPHRD_ETHER;
  link.flags = IFF_UP;
  link.mac = std::string("\x02\0\0\0\0", 5) + static_cast<char>(index);
  return link;
}

TEST(VmmTakeover, TakesWhatHasAMacAndArp) {
  for (const char* kind : {"veth", "macvlan", "vlan", "netkit", ""}) {
    LinkInfo link = VethOf(2);
    link.kind = kind;
    const Status done = PodOf({link, VethOf(3)}).Check();
    EXPECT_TRUE(done) << kind << ": " << done.error().message;
  }
  EXPECT_TRUE(PodOf({}).Check());
}

TEST(VmmTakeover, RefusesKindsByName) {
  for (const char* kind : {"ipvlan", "ipvtap", "macvtap", "tun"}) {
    LinkInfo link = VethOf(2);
    link.kind = kind;
    const Error error = PodOf({link}).Check().error();
    EXPECT_EQ(error.code, Code::kFailedPrecondition);
    EXPECT_THAT(error.message, HasSubstr(Format("interface 'eth2' cannot be a guest's: it is of "
                                                "the kind {}: ",
                                                kind)));
    EXPECT_THAT(error.message, HasSubstr("; use "));
  }
}

TEST(VmmTakeover, RefusesWhatIsNoEthernet) {
  LinkInfo tunnel = VethOf(2);
  tunnel.kind = "wireguard";
  tunnel.type = ARPHRD_NONE;
  EXPECT_THAT(PodOf({tunnel}).Check().error().message,
              HasSubstr("it is no Ethernet ('wireguard', type 65534)"));
  LinkInfo nameless = VethOf(2);
  nameless.mac.clear();
  EXPECT_FALSE(PodOf({nameless}).Check());
  LinkInfo routed = VethOf(2);
  routed.kind = "netkit";
  routed.flags |= IFF_NOARP;
  EXPECT_THAT(PodOf({routed}).Check().error().message, HasSubstr("it knows no ARP ('netkit')"));
}

TEST(VmmTakeover, RefusesTwoOfWhichTheGuestWouldSeeOne) {
  LinkInfo same = VethOf(3);
  same.mac = VethOf(2).mac;
  EXPECT_THAT(PodOf({VethOf(2), same}).Check().error().message,
              HasSubstr("interface 'eth3' cannot be a guest's: another one of the pod has the same "
                        "MAC"));
  LinkInfo above = VethOf(3);
  above.lower = 2;
  EXPECT_THAT(PodOf({VethOf(2), above}).Check().error().message,
              HasSubstr("interface 'eth3' cannot be a guest's: it is on top of 'eth2'"));
}

TEST(VmmTakeover, RefusesMoreThanAMachineHasPlacesFor) {
  std::vector<LinkInfo> many;
  for (size_t i = 0; i < kMostInterfaces; ++i) {
    many.push_back(VethOf(static_cast<int32_t>(i + 2)));
  }
  EXPECT_TRUE(PodOf(many).Check());
  many.push_back(VethOf(99));
  EXPECT_EQ(PodOf(many).Check().error().message, "the pod has 17 interfaces, a guest 16 at most");
}

TEST(VmmTakeover, WhatHasGoneMeanwhileIsNotTaken) {
  PodOf pod({VethOf(2)});
  pod.links.clear();
  EXPECT_EQ(pod.Check().error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace gantry::vmm
