// SPDX-License-Identifier: Apache-2.0
#include "core/store/record.h"

#include <optional>
#include <utility>

#include <gantry/toolkit/files/files.h>

#include "core/link/record_peek.h"
#include "core/store/checksum.h"

namespace gantry::store {
namespace {

// Of a bundle that is searched. It holds a handful; more would be somebody's mischief.

// The messages of proto/gantry/record.proto; a test compares the two.

struct StdioWire {
  std::string in;
  std::string out;
  std::string err;
  bool terminal = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.in);
    field(2, self.out);
    field(3, self.err);
    field(4, self.terminal);
  }
};

struct ProcessWire {
  int32_t pid = 0;
  uint64_t start_time = 0;
  bool exited = false;
  uint32_t exit_status = 0;
  int64_t exited_at_ns = 0;
  int32_t shown_pid = 0;
  bool unpublished = false;
  std::string saved;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
    field(3, self.exited);
    field(4, self.exit_status);
    field(5, self.exited_at_ns);
    field(6, self.shown_pid);
    field(7, self.unpublished);
    field(8, self.saved);
  }
};

struct ExecWire {
  std::string id;
  std::string spec_json;
  StdioWire stdio;
  uint32_t state = 0;
  ProcessWire process;
  bool stdin_closed = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.spec_json);
    field(3, self.stdio);
    field(4, self.state);
    field(5, self.process);
    field(6, self.stdin_closed);
  }
};

struct MountWire {
  std::string type;
  std::string source;
  std::string target;

  void Each(this auto& self, auto&& field) {
    field(1, self.type);
    field(2, self.source);
    field(3, self.target);
  }
};

// A map's entry, in protobuf's form.
struct PairWire {
  std::string key;
  std::string value;

  void Each(this auto& self, auto&& field) {
    field(1, self.key);
    field(2, self.value);
  }
};

struct RecordWire {
  uint32_t schema = 0;
  std::string ns;
  std::string id;
  uint32_t kind = 0;
  std::string sandbox_id;
  std::string bundle;
  std::string handler;
  std::string backend;
  std::string options_json;
  StdioWire stdio;
  uint32_t state = 0;
  ProcessWire init;
  std::vector<ExecWire> execs;
  std::vector<MountWire> mounts;
  std::optional<link::RecordPeek> brief;
  std::vector<std::string> cgroups;
  std::vector<PairWire> blobs;
  int64_t created_at_ns = 0;
  std::string netns_path;
  std::vector<PairWire> annotations;
  std::string checkpoint;
  std::string pod_config;
  std::vector<std::string> state_dirs;
  std::string sandbox_prefix;
  std::string rootfs;
  bool shared_pids = false;
  std::optional<link::Command> cleanup;

  void Each(this auto& self, auto&& field) {
    field(1, self.schema);
    field(2, self.ns);
    field(3, self.id);
    field(4, self.kind);
    field(5, self.sandbox_id);
    field(6, self.bundle);
    field(7, self.handler);
    field(8, self.backend);
    field(9, self.options_json);
    field(10, self.stdio);
    field(11, self.state);
    field(12, self.init);
    field(13, self.execs);
    field(14, self.mounts);
    field(link::kPeekField, self.brief);
    field(16, self.cgroups);
    field(17, self.blobs);
    field(18, self.created_at_ns);
    field(19, self.netns_path);
    field(20, self.annotations);
    field(21, self.checkpoint);
    field(22, self.pod_config);
    field(23, self.state_dirs);
    field(24, self.sandbox_prefix);
    field(25, self.rootfs);
    field(26, self.shared_pids);
    field(27, self.cleanup);
  }
};

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

std::string_view StateName(State state) {
  switch (state) {
    case State::kNone:
      return "none";
    case State::kCreating:
      return "creating";
    case State::kCreated:
      return "created";
    case State::kStarting:
      return "starting";
    case State::kRunning:
      return "running";
    case State::kPaused:
      return "paused";
    case State::kStopped:
      return "stopped";
    case State::kDeleting:
      return "deleting";
  }
  return "unknown";
}

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

std::string PathOf(std::string_view bundle) {
  return std::string(bundle).append("/").append(kFileName);
}

Result<Record> Read(const std::string& bundle) {
  const std::string path = PathOf(bundle);
  GANTRY_TRY(const std::string bytes, ReadFile(path, kMaxRecordBytes));
  auto record = Decode(bytes);
  if (!record) {
    return std::unexpected(std::move(record).error().Within("read '" + path + "'"));
  }
  return record;
}

Status Write(const Record& record, size_t most) {
  const std::string path = PathOf(record.bundle);
  const std::string bytes = Encode(record);
  if (bytes.size() > most) {
    return Fail(Code::kResourceExhausted,
                "write '{}': {} bytes, {} execs among them; {} are read again", path, bytes.size(),
                record.execs.size(), most);
  }
  return ReplaceFile(path, bytes, 0600);
}

Status Remove(const std::string& bundle) { return RemoveFile(PathOf(bundle)); }

void RemoveUnfinished(const std::string& bundle) {
  IgnoreError(gantry::RemoveUnfinished(PathOf(bundle)), "containerd removes the bundle in the end");
}

}  // namespace gantry::store
