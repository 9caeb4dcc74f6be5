// SPDX-License-Identifier: Apache-2.0
//
// What the two metrics messages are written with.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <gantry/protowire.h>
#include <gantry/toolkit/cgroup/statistics.h>

namespace gantry::stats {

/// As protobuf writes it: nothing for 0.
inline void Number(ProtoWriter& out, uint32_t field, uint64_t value) {
  if (value != 0) {
    out.Varint(field, value);
  }
}

/// A field and the name of the kernel's counter that it carries.
struct CounterField {
  uint32_t field;
  std::string_view name;
};

template <size_t N>
void Counters(ProtoWriter& out, const cgroup::CgroupCounters& counters,
              const std::array<CounterField, N>& fields) {
  for (const CounterField& entry : fields) {
    Number(out, entry.field, cgroup::Counter(counters, entry.name));
  }
}

/// PidsStat, alike in both versions.
inline void Pids(ProtoWriter& out, uint32_t field, const cgroup::CgroupPids& pids) {
  ProtoWriter message;
  Number(message, 1, pids.current);
  Number(message, 2, pids.limit);
  out.Bytes(field, message.str());
}

/// RdmaStat, alike in both versions. Nothing where there is no device.
inline void Rdma(ProtoWriter& out, uint32_t field, const std::vector<cgroup::CgroupRdma>& current,
                 const std::vector<cgroup::CgroupRdma>& limit) {
  ProtoWriter message;
  const auto entries = [&](uint32_t number, const std::vector<cgroup::CgroupRdma>& list) {
    for (const cgroup::CgroupRdma& entry : list) {
      ProtoWriter one;
      one.Text(1, entry.device);
      Number(one, 2, entry.hca_handles);
      Number(one, 3, entry.hca_objects);
      message.Bytes(number, one.str());
    }
  };
  entries(1, current);
  entries(2, limit);
  out.Text(field, message.str());
}

}  // namespace gantry::stats
