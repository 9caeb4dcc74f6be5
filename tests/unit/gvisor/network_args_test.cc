// SPDX-License-Identifier: Apache-2.0
//
// What a sentry is told of a pod's network, with namespaces of the kernel's.
#include "plugins/gvisor/network/network_args.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/toolkit/net/network.h>

#include "tests/unit/toolkit/net/network_fixture.h"

namespace gantry::gvisor {
namespace {

using net::PodNetwork;
using net::ReadNetwork;
using net::RunIn;
using nlohmann::json;
using testing::SizeIs;

using NetworkArgsTest = net::NetworkTest;

json Parsed(const std::string& text) { return json::parse(text, nullptr, false); }

TEST_F(NetworkArgsTest, AreOfWhatThereIs) {
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

TEST_F(NetworkArgsTest, ALinkHasTheLeastMtuOfItsRoutesWhereTheyHaveNone) {
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

TEST_F(NetworkArgsTest, OptionsAreTheSentrysFields) {
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

TEST(NetworkArgs, WithoutANamespaceAreOfALoopback) {
  const PodNetwork network = ReadNetwork("").value();
  EXPECT_EQ(Parsed(NetworkArgs(network, {})), Parsed(R"({"FDBasedLinks": [], "LoopbackLinks": [{
      "Name": "lo", "GVisorGRO": false,
      "Addresses": [{"Address": "127.0.0.1", "PrefixLen": 8}, {"Address": "::1", "PrefixLen": 128}],
      "Routes": [
        {"Destination": {"IP": "127.0.0.0", "Mask": "/wAAAA=="}, "Gateway": "", "MTU": 0},
        {"Destination": {"IP": "::1", "Mask": "/////////////////////w=="},
         "Gateway": "", "MTU": 0}]}]})"));
}

}  // namespace
}  // namespace gantry::gvisor
