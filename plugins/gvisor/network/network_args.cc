// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/network/network_args.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/toolkit/net/base64.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;
using Link = net::PodNetwork::Link;
using Route = net::PodNetwork::Route;

/// Source: pkg/tcpip/stack/registration.go, GVisorGSOMaxSize.
constexpr uint32_t kGvisorGsoMaxBytes = 1U << 16;

std::string MaskOf(size_t size, size_t prefix) {
  std::string mask(size, '\0');
  for (size_t bit = 0; bit < std::min(prefix, size * 8); ++bit) {
    mask[bit / 8] = static_cast<char>(mask[bit / 8] | 0x80 >> bit % 8);
  }
  return mask;
}

/// Go's net.IPNet.
Json Subnet(std::string ip, size_t prefix) {
  const std::string mask = MaskOf(ip.size(), prefix);
  for (size_t i = 0; i < ip.size(); ++i) {
    ip[i] = static_cast<char>(ip[i] & mask[i]);
  }
  return {{"IP", net::IpText(ip)}, {"Mask", net::ToBase64(mask)}};
}

Json ArgOf(const Route& route) {
  return {{"Destination", Subnet(route.destination, route.prefix)},
          {"Gateway", net::IpText(route.gateway)},
          {"MTU", route.mtu}};
}

class Writer {
 public:
  explicit Writer(const NetworkOptions& options) : options_(options) {}

  Json LoopbackOf(const Link& link) const {
    Json routes = Json::array();
    // Its addresses have their routes in the table `local`, which nobody reads.
    for (const net::PodNetwork::Address& address : link.addresses) {
      if (Serves(address.ip)) {
        routes.push_back(
            {{"Destination", Subnet(address.ip, address.prefix)}, {"Gateway", ""}, {"MTU", 0}});
      }
    }
    for (Json& route : RoutesOf(link)) {
      routes.push_back(std::move(route));
    }
    return {{"Name", link.name},
            {"Addresses", AddressesOf(link)},
            {"Routes", std::move(routes)},
            {"GVisorGRO", options_.gvisor_gro}};
  }

  Json InterfaceOf(const Link& link) const {
    const uint32_t host_gso = options_.host_gso ? link.gso_max_bytes : 0;
    const bool gvisor_gso = host_gso == 0 && options_.gvisor_gso;
    Json args = {{"Name", link.name},
                 {"InterfaceIndex", link.index},
                 {"MTU", MtuOf(link)},
                 {"Addresses", AddressesOf(link)},
                 {"Routes", RoutesOf(link)},
                 {"GSOMaxSize", gvisor_gso ? kGvisorGsoMaxBytes : host_gso},
                 {"GVisorGSOEnabled", gvisor_gso},
                 {"GVisorGRO", options_.gvisor_gro},
                 {"TXChecksumOffload", options_.tx_checksum_offload},
                 {"RXChecksumOffload", options_.rx_checksum_offload},
                 {"LinkAddress", net::ToBase64(link.mac)},
                 {"QDisc", static_cast<int>(options_.qdisc)},
                 {"Neighbors", NeighboursOf(link)},
                 {"NumChannels", options_.channels},
                 {"ProcessorsPerChannel", options_.processors_per_channel}};
    if (options_.qdisc == QueueingDiscipline::kTbf) {
      args["TBFRate"] = options_.tbf_rate;
      args["TBFBurst"] = options_.tbf_burst;
    }
    return args;
  }

  /// The default route that the kernel would take: the sentry knows one of each family.
  Json DefaultOf(const net::PodNetwork& network, size_t ip_size) const {
    Json best;
    uint32_t metric = 0;
    for (const Link& link : network.links) {
      for (const Route& route : link.routes) {
        const bool counts = !link.loopback && !route.special && route.prefix == 0 &&
                            route.destination.size() == ip_size && Serves(route.destination);
        if (counts && (best.is_null() || route.metric < metric)) {
          metric = route.metric;
          best = {{"Route", ArgOf(route)}, {"Name", link.name}};
        }
      }
    }
    return best;
  }

 private:
  uint32_t MtuOf(const Link& link) const {
    uint32_t mtu = link.mtu;
    for (const Route& route : link.routes) {
      if (!options_.route_mtu && !route.special && route.mtu != 0 && Serves(route.destination)) {
        mtu = std::min(mtu, route.mtu);
      }
    }
    return mtu;
  }

  bool Serves(std::string_view ip) const { return options_.ipv6 || ip.size() != net::kV6Bytes; }

  Json AddressesOf(const Link& link) const {
    Json all = Json::array();
    for (const net::PodNetwork::Address& one : link.addresses) {
      if (Serves(one.ip)) {
        all.push_back({{"Address", net::IpText(one.ip)}, {"PrefixLen", one.prefix}});
      }
    }
    return all;
  }

  Json RoutesOf(const Link& link) const {
    Json all = Json::array();
    for (const Route& one : link.routes) {
      if (!one.special && one.prefix != 0 && Serves(one.destination)) {
        all.push_back(ArgOf(one));
      }
    }
    return all;
  }

  Json NeighboursOf(const Link& link) const {
    Json all = Json::array();
    for (const net::PodNetwork::Neighbour& one : link.neighbours) {
      if (Serves(one.ip)) {
        all.push_back({{"IP", net::IpText(one.ip)}, {"HardwareAddr", net::ToBase64(one.mac)}});
      }
    }
    return all;
  }

  const NetworkOptions& options_;
};

Link UsualLoopback() {
  Link link;
  link.name = "lo";
  link.loopback = true;
  net::PodNetwork::Address v4;
  v4.ip = std::string("\x7f\0\0\x01", net::kV4Bytes);
  v4.prefix = 8;
  net::PodNetwork::Address v6;
  v6.ip = std::string(net::kV6Bytes - 1, '\0') + '\x01';
  v6.prefix = 128;
  link.addresses = {std::move(v4), std::move(v6)};
  return link;
}

}  // namespace

std::string NetworkArgs(const net::PodNetwork& network, const NetworkOptions& options) {
  const Writer writer(options);
  Json loopbacks = Json::array();
  Json interfaces = Json::array();
  for (const Link& link : network.links) {
    if (link.loopback) {
      loopbacks.push_back(writer.LoopbackOf(link));
    } else {
      interfaces.push_back(writer.InterfaceOf(link));
    }
  }
  if (loopbacks.empty()) {
    loopbacks.push_back(writer.LoopbackOf(UsualLoopback()));
  }
  Json args = {{"LoopbackLinks", std::move(loopbacks)}, {"FDBasedLinks", std::move(interfaces)}};
  if (options.log_packets) {
    args["LogPackets"] = true;
  }
  if (options.is_restore) {
    args["IsRestore"] = true;
  }
  if (Json v4 = writer.DefaultOf(network, net::kV4Bytes); !v4.is_null()) {
    args["Defaultv4Gateway"] = std::move(v4);
  }
  if (Json v6 = writer.DefaultOf(network, net::kV6Bytes); !v6.is_null()) {
    args["Defaultv6Gateway"] = std::move(v6);
  }
  return args.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gantry::gvisor
