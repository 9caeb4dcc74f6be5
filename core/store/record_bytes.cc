// SPDX-License-Identifier: Apache-2.0
//
// A record as bytes, and back.
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/record_peek.h"
#include "core/store/checksum.h"
#include "core/store/record.h"
#include "core/store/record_wire.h"

namespace gantry::store {
namespace {

StdioWire ToWire(const StdioPaths& stdio) {
  return {stdio.in, stdio.out, stdio.err, stdio.terminal};
}

StdioPaths FromWire(StdioWire wire) {
  return {std::move(wire.in), std::move(wire.out), std::move(wire.err), wire.terminal};
}

ProcessWire ToWire(const ProcessRecord& process) {
  return {process.pid.value,    process.start_time,      process.exited,      process.exit_status,
          process.exited_at_ns, process.shown_pid.value, process.unpublished, process.saved};
}

ProcessRecord FromWire(ProcessWire wire) {
  return {HostPid{wire.pid}, wire.start_time,   HostPid{wire.shown_pid}, wire.exited,
          wire.exit_status,  wire.exited_at_ns, wire.unpublished,        std::move(wire.saved)};
}

std::vector<PairWire> ToWire(const std::map<std::string, std::string>& map) {
  std::vector<PairWire> pairs;
  pairs.reserve(map.size());
  for (const auto& [key, value] : map) {
    pairs.push_back({key, value});
  }
  return pairs;
}

std::map<std::string, std::string> FromWire(std::vector<PairWire> pairs) {
  std::map<std::string, std::string> map;
  for (auto& [key, value] : pairs) {
    map.insert_or_assign(std::move(key), std::move(value));
  }
  return map;
}

link::RecordPeek PeekOf(const Record& record) {
  link::RecordPeek peek;
  peek.init_pid = record.init.pid.value;
  peek.start_time = record.init.start_time;
  peek.cgroup_dirs = record.cgroups;
  peek.state_dirs = record.state_dirs;
  peek.cleanup = record.cleanup;
  for (const MountedRecord& mount : record.mounts) {
    if (record.kind == Kind::kSandbox && mount.type == "tmpfs") {
      peek.memory_mounts.push_back(mount.target);
    }
  }
  if (record.init.exited) {
    peek.exit_status = record.init.exit_status;
    peek.exited_at_ns = record.init.exited_at_ns;
  }
  return peek;
}

RecordWire ToWire(const Record& record) {
  RecordWire wire;
  wire.schema = kSchema;
  wire.ns = record.ns.str();
  wire.id = record.id;
  wire.kind = std::to_underlying(record.kind);
  wire.sandbox_id = record.sandbox_id;
  wire.bundle = record.bundle;
  wire.handler = record.handler;
  wire.backend = record.backend;
  wire.options_json = record.options_json;
  wire.stdio = ToWire(record.stdio);
  wire.state = std::to_underlying(record.state);
  wire.init = ToWire(record.init);
  for (const ExecRecord& exec : record.execs) {
    wire.execs.push_back({exec.id.str(), exec.spec_json, ToWire(exec.stdio),
                          std::to_underlying(exec.state), ToWire(exec.process), exec.stdin_closed});
  }
  for (const MountedRecord& mount : record.mounts) {
    wire.mounts.push_back({mount.type, mount.source, mount.target});
  }
  wire.brief = PeekOf(record);
  wire.cgroups = record.cgroups;
  wire.blobs = ToWire(record.blobs);
  wire.created_at_ns = record.created_at_ns;
  wire.netns_path = record.netns_path;
  wire.annotations = ToWire(record.annotations);
  wire.checkpoint = record.checkpoint;
  wire.pod_config = record.pod_config;
  wire.state_dirs = record.state_dirs;
  wire.sandbox_prefix = record.sandbox_prefix;
  wire.rootfs = record.rootfs;
  wire.shared_pids = !record.private_pids;
  wire.cleanup = record.cleanup;
  return wire;
}

Result<State> StateOf(uint32_t number) {
  if (number > std::to_underlying(State::kDeleting)) {
    return Fail(Code::kDataLoss, "unknown state {}", number);
  }
  return static_cast<State>(number);
}

Status TakeExecs(std::vector<ExecWire> wires, Record& record) {
  for (ExecWire& wire : wires) {
    ExecRecord exec;
    GANTRY_TRY(exec.id, ExecId::Parse(wire.id));
    GANTRY_TRY(exec.state, StateOf(wire.state));
    exec.spec_json = std::move(wire.spec_json);
    exec.stdio = FromWire(std::move(wire.stdio));
    exec.process = FromWire(std::move(wire.process));
    exec.stdin_closed = wire.stdin_closed;
    record.execs.push_back(std::move(exec));
  }
  return {};
}

Result<Record> FromWire(RecordWire wire) {
  Record record;
  if (wire.schema < kOldestSchema || wire.schema > kSchema) {
    return Fail(Code::kDataLoss, "unknown schema {}", wire.schema);
  }
  GANTRY_TRY(record.ns, Namespace::Parse(wire.ns));
  // The alphabet of sandbox ids is that of containers'.
  GANTRY_TRY(const auto id, ContainerId::Parse(wire.id));
  if (wire.kind > std::to_underlying(Kind::kSandbox)) {
    return Fail(Code::kDataLoss, "unknown kind {}", wire.kind);
  }
  record.kind = static_cast<Kind>(wire.kind);
  record.id = id.str();
  record.sandbox_id = std::move(wire.sandbox_id);
  record.bundle = std::move(wire.bundle);
  record.handler = std::move(wire.handler);
  record.backend = std::move(wire.backend);
  record.options_json = std::move(wire.options_json);
  record.stdio = FromWire(std::move(wire.stdio));
  GANTRY_TRY(record.state, StateOf(wire.state));
  record.init = FromWire(std::move(wire.init));
  GANTRY_CHECK_OK(TakeExecs(std::move(wire.execs), record));
  for (MountWire& mount : wire.mounts) {
    record.mounts.push_back(
        {std::move(mount.type), std::move(mount.source), std::move(mount.target)});
  }
  record.cgroups = std::move(wire.cgroups);
  record.blobs = FromWire(std::move(wire.blobs));
  record.created_at_ns = wire.created_at_ns;
  record.netns_path = std::move(wire.netns_path);
  record.annotations = FromWire(std::move(wire.annotations));
  record.checkpoint = std::move(wire.checkpoint);
  record.pod_config = std::move(wire.pod_config);
  record.state_dirs = std::move(wire.state_dirs);
  record.sandbox_prefix = std::move(wire.sandbox_prefix);
  record.rootfs = std::move(wire.rootfs);
  record.private_pids = !wire.shared_pids;
  record.cleanup = std::move(wire.cleanup);
  return record;
}

// The schema alone, which is readable whatever else a later version changes.
uint32_t SchemaOf(std::string_view bytes) {
  ProtoReader in(bytes);
  return in.Next() && in.field() == 1 ? static_cast<uint32_t>(in.number()) : 0;
}

}  // namespace

std::string Encode(const Record& record) { return Seal(EncodeProto(ToWire(record))); }

std::string EncodePeek(const Record& record) {
  ProtoWriter peek;
  peek.Bytes(link::kPeekField, EncodeProto(PeekOf(record)));
  return peek.Take();
}

Result<Record> Decode(std::string_view bytes) {
  if (const uint32_t schema = SchemaOf(bytes); schema > kSchema) {
    return Fail(Code::kFailedPrecondition,
                "decode the record: schema {} is of a later gantry, this one reads up to {}",
                schema, kSchema);
  }
  GANTRY_TRY(const std::string_view body, Unseal(bytes));
  auto wire = DecodeProto<RecordWire>(body);
  auto record = wire ? FromWire(std::move(*wire)) : Result<Record>(std::unexpected(wire.error()));
  if (!record) {
    return Fail(Code::kDataLoss, "decode the record: {}", record.error().message);
  }
  return record;
}

}  // namespace gantry::store
