// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/toolkit/net/base64.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/pod_network.h>

namespace gantry::net {
namespace {

using Json = nlohmann::json;

/// Of an address of the family; 0: not of the internet.
size_t SizeOf(uint8_t family) {
  return family == AF_INET ? kV4Bytes : family == AF_INET6 ? kV6Bytes : 0;
}

/// The way that a message with several next hops begins with.
int32_t FirstHop(std::string_view hops) {
  rtnexthop first{};
  hops.copy(reinterpret_cast<char*>(&first), sizeof(first));
  return first.rtnh_ifindex;
}

Json MessagesOf(const auto& all) {
  Json texts = Json::array();
  for (const auto& one : all) {
    texts.push_back(ToBase64(one.message));
  }
  return texts;
}

Json JsonOf(const PodNetwork::Link& link) {
  return {{"name", link.name},
          {"index", link.index},
          {"mtu", link.mtu},
          {"mac", ToBase64(link.mac)},
          {"loopback", link.loopback},
          {"gso_max_bytes", link.gso_max_bytes},
          {"addresses", MessagesOf(link.addresses)},
          {"routes", MessagesOf(link.routes)},
          {"neighbours", MessagesOf(link.neighbours)}};
}

std::unexpected<Error> NotUnderstood(std::string_view what) {
  return Fail(Code::kDataLoss, "read a saved network: {} is not understood", what);
}

template <class T>
Result<std::vector<T>> FromMessages(const Json& texts) {
  std::vector<T> all;
  for (const Json& text : texts) {
    std::optional<std::string> message = FromBase64(text.get_ref<const std::string&>());
    std::optional<T> one = message ? T::From(std::move(*message)) : std::nullopt;
    if (!one) {
      return NotUnderstood(text.get_ref<const std::string&>());
    }
    all.push_back(std::move(*one));
  }
  return all;
}

Result<PodNetwork::Link> LinkOf(const Json& json) {
  PodNetwork::Link link;
  link.name = json.at("name").get<std::string>();
  link.index = json.at("index").get<int32_t>();
  link.mtu = json.at("mtu").get<uint32_t>();
  link.mac = FromBase64(json.at("mac").get_ref<const std::string&>()).value_or("");
  link.loopback = json.at("loopback").get<bool>();
  link.gso_max_bytes = json.at("gso_max_bytes").get<uint32_t>();
  GANTRY_TRY(link.addresses, FromMessages<PodNetwork::Address>(json.at("addresses")));
  GANTRY_TRY(link.routes, FromMessages<PodNetwork::Route>(json.at("routes")));
  GANTRY_TRY(link.neighbours, FromMessages<PodNetwork::Neighbour>(json.at("neighbours")));
  return link;
}

}  // namespace

std::optional<PodNetwork::Address> PodNetwork::Address::From(std::string message) {
  const auto parsed = Parse<ifaddrmsg>(message);
  if (!parsed) {
    return std::nullopt;
  }
  Address address;
  address.interface = static_cast<int32_t>(parsed->header.ifa_index);
  address.prefix = parsed->header.ifa_prefixlen;
  // Where both are there, this end's is the local one and the other is the peer's.
  address.ip = parsed->attributes.Find(IFA_LOCAL);
  if (address.ip.empty()) {
    address.ip = parsed->attributes.Find(IFA_ADDRESS);
  }
  const size_t size = SizeOf(parsed->header.ifa_family);
  if (size == 0 || address.ip.size() != size || address.prefix > size * 8) {
    return std::nullopt;
  }
  address.message = std::move(message);
  return address;
}

std::optional<PodNetwork::Route> PodNetwork::Route::From(std::string message) {
  const auto parsed = Parse<rtmsg>(message);
  if (!parsed) {
    return std::nullopt;
  }
  const auto& [header, attributes] = *parsed;
  const size_t size = SizeOf(header.rtm_family);
  const uint32_t wide_table = attributes.Number(RTA_TABLE);
  const uint32_t table = wide_table != 0 ? wide_table : header.rtm_table;
  if (size == 0 || header.rtm_type != RTN_UNICAST || table == RT_TABLE_LOCAL ||
      (header.rtm_flags & RTM_F_CLONED) != 0) {
    return std::nullopt;
  }
  const std::string_view hops = attributes.Find(RTA_MULTIPATH);
  Route route;
  route.interface =
      hops.empty() ? static_cast<int32_t>(attributes.Number(RTA_OIF)) : FirstHop(hops);
  route.destination = attributes.Find(RTA_DST);
  route.prefix = header.rtm_dst_len;
  if (route.prefix == 0) {
    route.destination.assign(size, '\0');
  }
  route.gateway = attributes.Find(RTA_GATEWAY);
  route.metric = attributes.Number(RTA_PRIORITY);
  route.mtu = Attributes(attributes.Find(RTA_METRICS)).Number(RTAX_MTU);
  const bool via = !attributes.Find(RTA_VIA).empty();
  route.on_link = route.gateway.empty() && hops.empty() && !via;
  route.special = table != RT_TABLE_MAIN || !hops.empty() || via ||
                  !attributes.Find(RTA_ENCAP).empty() || header.rtm_src_len != 0;
  if (route.destination.size() != size || route.prefix > size * 8 ||
      (!route.gateway.empty() && route.gateway.size() != size)) {
    return std::nullopt;
  }
  route.message = std::move(message);
  return route;
}

std::optional<PodNetwork::Neighbour> PodNetwork::Neighbour::From(std::string message) {
  const auto parsed = Parse<ndmsg>(message);
  if (!parsed || parsed->header.ndm_state != NUD_PERMANENT) {
    return std::nullopt;
  }
  Neighbour neighbour;
  neighbour.interface = parsed->header.ndm_ifindex;
  neighbour.ip = parsed->attributes.Find(NDA_DST);
  neighbour.mac = parsed->attributes.Find(NDA_LLADDR);
  const size_t size = SizeOf(parsed->header.ndm_family);
  if (size == 0 || neighbour.ip.size() != size || neighbour.mac.size() != kMacBytes) {
    return std::nullopt;
  }
  neighbour.message = std::move(message);
  return neighbour;
}

PodNetwork::Link* PodNetwork::Find(int32_t index) {
  const auto found = std::ranges::find(links, index, &Link::index);
  return found == links.end() ? nullptr : &*found;
}

bool PodNetwork::HasInterfaces() const {
  return std::ranges::any_of(links, [](const Link& link) { return !link.loopback; });
}

std::string PodNetwork::ToJson() const {
  Json all = Json::array();
  for (const Link& link : links) {
    all.push_back(JsonOf(link));
  }
  return Json({{"netns", netns}, {"links", std::move(all)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<PodNetwork> PodNetwork::FromJson(std::string_view text) {
  try {
    const Json json = ReadJson(text, kSpecJson);
    PodNetwork network;
    network.netns = json.at("netns").get<uint64_t>();
    for (const Json& one : json.at("links")) {
      GANTRY_TRY(Link link, LinkOf(one));
      network.links.push_back(std::move(link));
    }
    return network;
  } catch (const Json::exception& error) {
    return NotUnderstood(error.what());
  }
}

std::string IpText(std::string_view ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ip.size() == kV4Bytes ? AF_INET : AF_INET6;
  const char* const done = ip.size() == SizeOf(static_cast<uint8_t>(family))
                               ? inet_ntop(family, ip.data(), text.data(), text.size())
                               : nullptr;
  return done == nullptr ? "" : done;
}

}  // namespace gantry::net
