// SPDX-License-Identifier: Apache-2.0
//
// The requests of the host and what is answered. proto/gantry/guest/agent.proto says what each
// field is; `kKind` is the request's number, `Answer` what comes back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

struct Nothing {
  void Each(this auto&, auto&&) {}
};

// --- The guest itself

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

/// A `GuestMount::type`: no mount, but the device file of a disk.
inline constexpr const char* kDeviceFile = "device";

struct GuestMount {
  std::string type{};
  std::string source{};
  std::string serial{};
  std::string target{};
  std::vector<std::string> options{};

  void Each(this auto& self, auto&& field) {
    field(1, self.type);
    field(2, self.source);
    field(3, self.serial);
    field(4, self.target);
    field(5, self.options);
  }
};

struct Attach {
  static constexpr Kind kKind = Kind::kAttach;
  using Answer = Nothing;

  std::vector<GuestMount> mounts{};
  uint32_t wait_ms = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.mounts);
    field(2, self.wait_ms);
  }
};

struct Detach {
  static constexpr Kind kKind = Kind::kDetach;
  using Answer = Nothing;

  std::vector<std::string> targets{};

  void Each(this auto& self, auto&& field) { field(1, self.targets); }
};

struct OnlineAnswer {
  uint32_t cpus = 0;
  uint64_t memory_bytes = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.cpus);
    field(2, self.memory_bytes);
  }
};

struct Online {
  static constexpr Kind kKind = Kind::kOnline;
  using Answer = OnlineAnswer;

  uint32_t cpus = 0;
  uint32_t wait_ms = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.cpus);
    field(2, self.wait_ms);
  }
};

struct Forward {
  static constexpr Kind kKind = Kind::kForward;
  using Answer = Nothing;

  uint32_t port = 0;
  std::string token{};

  void Each(this auto& self, auto&& field) {
    field(1, self.port);
    field(2, self.token);
  }
};

struct Shutdown {
  static constexpr Kind kKind = Kind::kShutdown;
  using Answer = Nothing;

  void Each(this auto&, auto&&) {}
};

// --- Containers and their processes

struct Streams {
  std::string input{};
  std::string output{};
  std::string error{};
  std::string terminal{};

  void Each(this auto& self, auto&& field) {
    field(1, self.input);
    field(2, self.output);
    field(3, self.error);
    field(4, self.terminal);
  }
};

struct CreateAnswer {
  int32_t pid = 0;
  std::vector<std::string> warnings{};

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.warnings);
  }
};

struct CreateContainer {
  static constexpr Kind kKind = Kind::kCreateContainer;
  using Answer = CreateAnswer;

  std::string container{};
  std::string bundle{};
  std::string spec_json{};
  Streams streams{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.bundle);
    field(3, self.spec_json);
    field(4, self.streams);
  }
};

struct CreateExec {
  static constexpr Kind kKind = Kind::kCreateExec;
  using Answer = CreateAnswer;

  std::string container{};
  std::string exec{};
  std::string process_json{};
  Streams streams{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.process_json);
    field(4, self.streams);
  }
};

struct Start {
  static constexpr Kind kKind = Kind::kStart;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
  }
};

struct Signal {
  static constexpr Kind kKind = Kind::kSignal;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};
  uint32_t signal = 0;
  bool all = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.signal);
    field(4, self.all);
  }
};

struct Pause {
  static constexpr Kind kKind = Kind::kPause;
  using Answer = Nothing;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

struct Resume {
  static constexpr Kind kKind = Kind::kResume;
  using Answer = Nothing;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

struct Update {
  static constexpr Kind kKind = Kind::kUpdate;
  using Answer = Nothing;

  std::string container{};
  std::string resources_json{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.resources_json);
  }
};

struct Resize {
  static constexpr Kind kKind = Kind::kResize;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};
  uint32_t width = 0;
  uint32_t height = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.width);
    field(4, self.height);
  }
};

struct Delete {
  static constexpr Kind kKind = Kind::kDelete;
  using Answer = Nothing;

  std::string container{};
  std::string exec{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
  }
};

}  // namespace gantry::vmm::protocol
