// SPDX-License-Identifier: Apache-2.0
//
// What the guest tells of its containers: figures, processes, ends. As messages.h; of a guest that
// lies the host makes what it can, see plugins/vmm/agent/events.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {

struct DeviceStats {
  uint64_t major = 0;
  uint64_t minor = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.major);
    field(2, self.minor);
    field(3, self.read_bytes);
    field(4, self.written_bytes);
    field(5, self.reads);
    field(6, self.writes);
  }
};

struct InterfaceStats {
  std::string name{};
  uint64_t received_bytes = 0;
  uint64_t received_packets = 0;
  uint64_t received_errors = 0;
  uint64_t received_dropped = 0;
  uint64_t sent_bytes = 0;
  uint64_t sent_packets = 0;
  uint64_t sent_errors = 0;
  uint64_t sent_dropped = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.received_bytes);
    field(3, self.received_packets);
    field(4, self.received_errors);
    field(5, self.received_dropped);
    field(6, self.sent_bytes);
    field(7, self.sent_packets);
    field(8, self.sent_errors);
    field(9, self.sent_dropped);
  }
};

struct StatsAnswer {
  uint64_t cpu_usage_ns = 0;
  uint64_t cpu_user_ns = 0;
  uint64_t cpu_system_ns = 0;
  uint64_t memory_usage_bytes = 0;
  uint64_t memory_limit_bytes = 0;
  uint64_t anonymous_bytes = 0;
  uint64_t inactive_file_bytes = 0;
  uint64_t page_faults = 0;
  uint64_t major_page_faults = 0;
  uint64_t oom_kills = 0;
  uint64_t pids = 0;
  uint64_t pids_limit = 0;
  std::vector<DeviceStats> devices{};
  std::vector<InterfaceStats> interfaces{};

  void Each(this auto& self, auto&& field) {
    field(1, self.cpu_usage_ns);
    field(2, self.cpu_user_ns);
    field(3, self.cpu_system_ns);
    field(4, self.memory_usage_bytes);
    field(5, self.memory_limit_bytes);
    field(6, self.anonymous_bytes);
    field(7, self.inactive_file_bytes);
    field(8, self.page_faults);
    field(9, self.major_page_faults);
    field(10, self.oom_kills);
    field(11, self.pids);
    field(12, self.pids_limit);
    field(13, self.devices);
    field(14, self.interfaces);
  }
};

struct Stats {
  static constexpr Kind kKind = Kind::kStats;
  using Answer = StatsAnswer;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

struct PidInfo {
  int32_t pid = 0;
  std::string exec{};

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.exec);
  }
};

struct PidsAnswer {
  std::vector<PidInfo> pids{};

  void Each(this auto& self, auto&& field) { field(1, self.pids); }
};

struct Pids {
  static constexpr Kind kKind = Kind::kPids;
  using Answer = PidsAnswer;

  std::string container{};

  void Each(this auto& self, auto&& field) { field(1, self.container); }
};

enum class ProcessState : uint32_t { kMaking = 0, kCreated = 1, kRunning = 2, kExited = 3 };

struct ProcessReport {
  std::string exec{};
  int32_t pid = 0;
  uint32_t state = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.exec);
    field(2, self.pid);
    field(3, self.state);
    field(4, self.status);
    field(5, self.exited_at_ns);
  }
};

struct ContainerReport {
  std::string container{};
  uint64_t oom_kills = 0;
  bool paused = false;
  std::vector<ProcessReport> processes{};

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.oom_kills);
    field(3, self.paused);
    field(4, self.processes);
  }
};

struct ListAnswer {
  std::vector<ContainerReport> containers{};

  void Each(this auto& self, auto&& field) { field(1, self.containers); }
};

struct List {
  static constexpr Kind kKind = Kind::kList;
  using Answer = ListAnswer;

  void Each(this auto&, auto&&) {}
};

// --- Events

struct Exited {
  static constexpr Kind kKind = Kind::kExited;

  std::string container{};
  std::string exec{};
  uint32_t status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.exec);
    field(3, self.status);
    field(4, self.exited_at_ns);
  }
};

struct OutOfMemory {
  static constexpr Kind kKind = Kind::kOutOfMemory;

  std::string container{};
  uint64_t kills = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.container);
    field(2, self.kills);
  }
};

struct LogLine {
  static constexpr Kind kKind = Kind::kLog;

  std::string text{};
  uint64_t lost = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.text);
    field(2, self.lost);
  }
};

}  // namespace gantry::vmm::protocol
