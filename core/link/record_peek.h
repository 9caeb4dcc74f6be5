// SPDX-License-Identifier: Apache-2.0
//
// The part of a bundle's `gantry.record` that the shim reads when keeper and
// engine are both gone: what to kill, and how the instance ended if it did. The
// engine embeds it in its record (a protobuf message) as field
// `kPeekField`; the shim understands nothing else of that file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/command.h"

namespace gantry::link {

inline constexpr char kRecordFile[] = "gantry.record";
/// Largest record that is written, and that is read: a thousand execs with an environment each.
inline constexpr size_t kMaxRecordBytes = size_t{16} << 20;
inline constexpr uint32_t kPeekField = 15;
/// A folder in a pod's bundle: a file for each of its containers, named by the
/// container's id, a record with nothing but its peek. They end with the pod, whose
/// bundle may be the only one that is left.
inline constexpr char kMembersFolder[] = "members";

struct RecordPeek {
  /// 0: no process was started yet.
  int32_t init_pid = 0;
  /// Clock ticks since boot.
  uint64_t start_time = 0;
  /// As LastResort::cgroup_dirs.
  std::vector<std::string> cgroup_dirs;
  /// Set once init has ended: exit code or 128 + signal.
  std::optional<uint32_t> exit_status;
  int64_t exited_at_ns = 0;
  /// As LastResort::state_dirs.
  std::vector<std::string> state_dirs;
  /// As LastResort::memory_mounts.
  std::vector<std::string> memory_mounts;
  /// As LastResort::cleanup.
  std::optional<Command> cleanup;

  void Each(this auto& self, auto&& field) {
    field(1, self.init_pid);
    field(2, self.start_time);
    field(3, self.cgroup_dirs);
    field(4, self.exit_status);
    field(5, self.exited_at_ns);
    field(6, self.state_dirs);
    field(7, self.memory_mounts);
    field(8, self.cleanup);
  }
};

/// The peek in the bytes of a whole record.
/// Errors: kNotFound where it has none, kInvalidArgument for malformed bytes.
Result<RecordPeek> PeekRecord(std::string_view record);

}  // namespace gantry::link
