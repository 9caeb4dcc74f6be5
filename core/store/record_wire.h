// SPDX-License-Identifier: Apache-2.0
//
// The messages of proto/gantry/record.proto as structures, for record_bytes.cc alone: what they
// mean is said there and in record.h. A test compares them with the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/link/command.h"
#include "core/link/record_peek.h"

namespace gantry::store {

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

/// A map's entry, in protobuf's form.
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

}  // namespace gantry::store
