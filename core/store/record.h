// SPDX-License-Identifier: Apache-2.0
//
// The record in the bundle: what gantry must know about a sandbox or container
// after a restart. It is written, atomically, before the effect that it
// describes is acknowledged. Layout: proto/gantry/record.proto.
//
// Plain data: make a copy on the reactor, write it on a worker. Two writers of
// one record at a time are the caller's mistake; the container's slot prevents it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/ids.h>

#include "core/link/command.h"
#include "core/link/record_peek.h"

namespace gantry::store {

/// What this build writes. A record with a higher number is refused, not guessed at.
/// 1: an exec on record is one that is there.
/// 2: an exec in kDeleting is gone, and only kept for a Delete that is asked again;
///    what config.json said that is needed to take a container up again.
inline constexpr uint32_t kSchema = 2;
/// The oldest that is read: of the version before.
inline constexpr uint32_t kOldestSchema = 1;
inline constexpr std::string_view kFileName = link::kRecordFile;
inline constexpr size_t kMaxRecordBytes = link::kMaxRecordBytes;
/// Who adds to a record leaves so much of that to its states, which must never be refused.
inline constexpr size_t kSpareRecordBytes = size_t{1} << 20;

enum class Kind : uint32_t { kContainer = 0, kSandbox = 1 };

/// Of a container, a sandbox or an exec. The numbers are on disk.
enum class State : uint32_t {
  kNone = 0,
  kCreating = 1,
  kCreated = 2,
  kStarting = 3,
  kRunning = 4,
  kPaused = 5,
  kStopped = 6,
  kDeleting = 7,
};

/// `creating`, `running`, ...
std::string_view StateName(State state);

struct StdioPaths {
  std::string in;
  std::string out;
  std::string err;
  bool terminal = false;

  bool operator==(const StdioPaths&) const = default;
};

struct ProcessRecord {
  /// The host process; 0: none (yet).
  HostPid pid;
  uint64_t start_time = 0;
  /// What containerd is told where that is not `pid`.
  HostPid shown_pid;
  bool exited = false;
  uint32_t exit_status = 0;
  int64_t exited_at_ns = 0;
  /// The event of its exit may not be out, and only who reads this would repeat
  /// it: the keeper has no such process.
  bool unpublished = false;
  /// What its backend keeps of it.
  std::string saved{};

  bool operator==(const ProcessRecord&) const = default;
};

struct ExecRecord {
  ExecId id;
  std::string spec_json;
  StdioPaths stdio;
  State state = State::kNone;
  ProcessRecord process;
  /// CloseIO came before it ran.
  bool stdin_closed = false;

  bool operator==(const ExecRecord&) const = default;
};

struct MountedRecord {
  std::string type;
  std::string source;
  /// Absolute.
  std::string target;

  bool operator==(const MountedRecord&) const = default;
};

struct Record {
  Kind kind = Kind::kContainer;
  Namespace ns;
  /// A container's id; a sandbox's id in the same alphabet.
  std::string id;
  /// The pod's; empty for a container that stands alone.
  std::string sandbox_id;
  std::string bundle;
  std::string handler;
  std::string backend;
  /// What the backend was given: handler's options and the request's, merged.
  std::string options_json;
  StdioPaths stdio;
  State state = State::kNone;
  ProcessRecord init;
  std::vector<ExecRecord> execs;
  /// In the order in which they were mounted.
  std::vector<MountedRecord> mounts;
  /// The first is the container's own; v1 has one per controller.
  std::vector<std::string> cgroups;
  /// Outside the bundle, the container's alone.
  std::vector<std::string> state_dirs;
  /// Ends it where there is no engine, once its processes are dead.
  std::optional<link::Command> cleanup;
  /// What the names of its sandbox's descriptors and processes at the keeper begin
  /// with; the same for all that use the sandbox.
  std::string sandbox_prefix;
  /// The backend's state, by name: "sandbox", "container".
  std::map<std::string, std::string> blobs;
  int64_t created_at_ns = 0;
  /// The network namespace that it shall be in; empty: not any that has a path.
  std::string netns_path;
  /// Absolute; empty in a record of schema 1.
  std::string rootfs;
  /// The kernel ends all processes of it with the first.
  bool private_pids = true;
  std::map<std::string, std::string> annotations;
  std::string checkpoint;
  /// `PodSandboxConfig`, of a pod without a pause container.
  std::string pod_config;

  bool operator==(const Record&) const = default;
};

/// The record as bytes. Field 15 repeats what the shim's `delete` needs.
std::string Encode(const Record& record);
/// Nothing but what the shim reads (link::RecordPeek).
std::string EncodePeek(const Record& record);

/// Errors: kDataLoss: malformed, cut off or checksum wrong; kFailedPrecondition:
/// written by a later version.
Result<Record> Decode(std::string_view bytes);

/// `bundle`/gantry.record.
std::string PathOf(std::string_view bundle);

/// Reads the record of a bundle. Errors: as `Decode`, with the path; kNotFound.
/// Blocks: for the file. Thread: workers.
Result<Record> Read(const std::string& bundle);

/// Replaces the record in `record.bundle`: all of it or nothing.
/// Errors: kResourceExhausted: more than `most` bytes, ENOSPC and the like; the old one is then
/// still there. Blocks: for the file. Thread: workers.
Status Write(const Record& record, size_t most = kMaxRecordBytes);

/// Again: allowed. Blocks: for the file. Thread: workers.
Status Remove(const std::string& bundle);

/// Removes what a `Write` left that was killed half-way. Nobody may be writing.
/// Blocks: for the files. Thread: workers.
void RemoveUnfinished(const std::string& bundle);

/// Renames a record that cannot be used to gantry.record.bad, so that it can be
/// looked at and is not read again. Returns the new path.
/// Blocks: for the file. Thread: workers.
Result<std::string> Quarantine(const std::string& bundle);

}  // namespace gantry::store
