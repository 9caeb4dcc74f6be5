// SPDX-License-Identifier: Apache-2.0
//
// The first request to a guest: who it is, and its clock and network. See messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

struct Clock {
  int64_t realtime_ns = 0;
  bool step = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.realtime_ns);
    field(2, self.step);
  }
};

struct Address {
  std::string ip{};
  uint32_t prefix = 0;
  std::string peer{};
  std::string broadcast{};
  bool no_prefix_route = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.ip);
    field(2, self.prefix);
    field(3, self.peer);
    field(4, self.broadcast);
    field(5, self.no_prefix_route);
  }
};

struct Interface {
  std::string mac{};
  std::string name{};
  uint32_t mtu = 0;
  std::vector<Address> addresses{};

  void Each(this auto& self, auto&& field) {
    field(1, self.mac);
    field(2, self.name);
    field(3, self.mtu);
    field(4, self.addresses);
  }
};

struct NextHop {
  std::string interface{};
  std::string gateway{};
  uint32_t weight = 0;
  bool on_link = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.interface);
    field(2, self.gateway);
    field(3, self.weight);
    field(4, self.on_link);
  }
};

struct Route {
  std::string interface{};
  std::string destination{};
  uint32_t prefix = 0;
  std::string gateway{};
  std::string source{};
  uint32_t metric = 0;
  uint32_t mtu = 0;
  uint32_t scope = 0;
  uint32_t table = 0;
  bool on_link = false;
  uint32_t protocol = 0;
  std::vector<NextHop> next_hops{};

  void Each(this auto& self, auto&& field) {
    field(1, self.interface);
    field(2, self.destination);
    field(3, self.prefix);
    field(4, self.gateway);
    field(5, self.source);
    field(6, self.metric);
    field(7, self.mtu);
    field(8, self.scope);
    field(9, self.table);
    field(10, self.on_link);
    field(11, self.protocol);
    field(12, self.next_hops);
  }
};

struct Neighbour {
  std::string interface{};
  std::string ip{};
  std::string mac{};
  uint32_t state = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.interface);
    field(2, self.ip);
    field(3, self.mac);
    field(4, self.state);
  }
};

struct File {
  std::string path{};
  std::string content{};
  uint32_t mode = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.path);
    field(2, self.content);
    field(3, self.mode);
  }
};

struct Sysctl {
  std::string name{};
  std::string value{};

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.value);
  }
};

struct SetUp {
  static constexpr Kind kKind = Kind::kSetUp;
  using Answer = Nothing;

  std::string hostname{};
  std::optional<Clock> clock{};
  std::string entropy{};
  std::vector<Interface> interfaces{};
  std::vector<Route> routes{};
  std::vector<Neighbour> neighbours{};
  std::vector<File> files{};
  std::vector<Sysctl> sysctls{};
  std::vector<std::string> rules{};

  void Each(this auto& self, auto&& field) {
    field(1, self.hostname);
    field(2, self.clock);
    field(3, self.entropy);
    field(4, self.interfaces);
    field(5, self.routes);
    field(6, self.neighbours);
    field(7, self.files);
    field(8, self.sysctls);
    field(9, self.rules);
  }
};

}  // namespace gantry::vmm::protocol
