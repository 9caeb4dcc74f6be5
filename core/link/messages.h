// SPDX-License-Identifier: Apache-2.0
//
// Every message that shim, gantryctl, keeper and engine exchange, in both
// directions. How they are framed on a socket is in channel.h, how they become
// bytes in codec.h.
//
// Two conversations use them.
//
// Control, $GANTRY_RUN_DIR/keeper.sock: a client connects, sends one of
// Announce, Delete, Query, Upgrade, and reads its answer: Announced, Deleted,
// KeeperStatus, Upgraded, or Failed. More questions may follow on the connection.
//
// Engine link, a socket pair that the engine finds as descriptor 3:
//
//     engine                                 keeper
//     Hello ────────────────────────────────▶
//      ◀────────────────────────────────────  Welcome
//      ◀────────────────────────────────────  InstanceAdded, Protect for each instance
//      ◀────────────────────────────────────  StoredNames (in several parts)
//      ◀────────────────────────────────────  NamedSpawn, each that still runs or is unacknowledged
//      ◀────────────────────────────────────  Exit, each that was not acknowledged
//      ◀────────────────────────────────────  SnapshotEnd
//      ◀────────────────────────────────────  Request with `replay`, those unanswered
//      ◀────────────────────────────────────  DeleteCall, those unanswered
//     live traffic in both directions ◀─────▶
//
// The keeper handles the engine's messages in the order they were sent and
// answers each tagged one exactly once. So a Protect sent before a Spawn is in
// force when the process is born.
//
// Descriptors travel with a message in the order that its comment says.
// Numbers of messages and fields are never used again for something else: an
// older keeper serves a newer engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/link/codec.h"

namespace gantry::link {

/// What Hello and Welcome carry. Raised when one side could misread the other.
inline constexpr uint32_t kProtocolVersion = 1;
/// Where an engine finds its end of the link.
inline constexpr int kEngineLinkFd = 3;
/// A stored descriptor's name is at most this long.
inline constexpr size_t kMaxStoredName = 256;
/// So many descriptors the keeper stores; a Put beyond it is refused.
inline constexpr size_t kMaxStoredDescriptors = 16384;
/// The pid in a Deleted that names no process (containerd's -1).
inline constexpr uint32_t kNoPid = 0xffffffff;

enum class Type : uint16_t {
  // Control.
  kAnnounce = 1,
  kAnnounced = 2,
  kDelete = 3,
  kDeleted = 4,
  kQuery = 5,
  kKeeperStatus = 6,
  kUpgrade = 7,
  kUpgraded = 8,
  kFailed = 15,
  // Engine link: hand-over.
  kHello = 20,
  kWelcome = 21,
  kInstanceAdded = 22,
  kInstanceRemoved = 23,
  kSnapshotEnd = 24,
  kStoredNames = 25,
  kNamedSpawn = 26,
  kAddMember = 27,
  kMemberAdded = 28,
  // Engine link: containerd's requests.
  kRequest = 30,
  kResponse = 31,
  kConnectionClosed = 32,
  kDeleteCall = 33,
  kDeleteDone = 34,
  // Engine link: processes.
  kSpawn = 40,
  kSpawned = 41,
  kAdopt = 42,
  kExit = 43,
  kExitAck = 44,
  kAdopted = 45,
  // Engine link: descriptor store.
  kPut = 50,
  kPutDone = 51,
  kTake = 52,
  kTaken = 53,
  kDrop = 54,
  // Engine link: last resort.
  kProtect = 60,
  kForget = 61,
};

// --- Control -----------------------------------------------------------------

/// shim -> keeper: containerd starts an instance (a container or a sandbox).
/// Answer: Announced. An instance of the same containerd, namespace and id that
/// has no living process is replaced; with one the answer is Failed, kAlreadyExists.
struct Announce {
  static constexpr Type kType = Type::kAnnounce;

  std::string id;
  std::string ns;
  /// Absolute path of the bundle.
  std::string bundle;
  /// Instances of one group share a socket. Empty: a group of its own, named `id`.
  std::string group;
  /// containerd's gRPC and ttrpc sockets, as it gave them.
  std::string grpc_address;
  std::string ttrpc_address;
  /// containerd's own binary, for `publish`.
  std::string containerd_binary;
  bool debug = false;
  /// From the name the shim was called by: "wasm" for
  /// containerd-shim-gantry-wasm-v1, "" for containerd-shim-gantry-v1.
  std::string handler;
  /// The runtime options (an Any) that came on the shim's stdin, if any.
  std::string options_type_url;
  std::string options;
  /// Which form the shim was started in: 0 plain (containerd 1.6 .. 2.2), 3
  /// BootstrapParams (2.3 and later).
  uint32_t bootstrap_version = 0;
  /// BootstrapParams' containerd_version, else "".
  std::string containerd_version;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.ns);
    field(3, self.bundle);
    field(4, self.group);
    field(5, self.grpc_address);
    field(6, self.ttrpc_address);
    field(7, self.containerd_binary);
    field(8, self.debug);
    field(9, self.handler);
    field(10, self.options_type_url);
    field(11, self.options);
    field(12, self.bootstrap_version);
    field(13, self.containerd_version);
  }
};

/// keeper -> shim: the instance's socket is listening.
struct Announced {
  static constexpr Type kType = Type::kAnnounced;

  /// "unix:///run/gantry/s/0123...".
  std::string address;

  void Each(this auto& self, auto&& field) { field(1, self.address); }
};

/// shim -> keeper: end an instance, whatever state it is in. Answered within
/// 4 s, with the engine or without it. Answer: Deleted.
struct Delete {
  static constexpr Type kType = Type::kDelete;

  std::string id;
  std::string ns;
  std::string bundle;
  std::string grpc_address;

  void Each(this auto& self, auto&& field) {
    field(1, self.id);
    field(2, self.ns);
    field(3, self.bundle);
    field(4, self.grpc_address);
  }
};

/// keeper -> shim: how the instance's init process ended.
struct Deleted {
  static constexpr Type kType = Type::kDeleted;

  /// `kNoPid` where there never was a process.
  uint32_t pid = 0;
  /// Exit code, or 128 + signal.
  uint32_t status = 0;
  /// Nanoseconds since 1970.
  int64_t exited_at_ns = 0;
  /// The keeper had such an instance. Otherwise the values are made up (137, now)
  /// and the shim looks into the bundle's record for what is left to kill.
  bool known = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.status);
    field(3, self.exited_at_ns);
    field(4, self.known);
  }
};

/// gantryctl -> keeper: what the keeper holds. Answer: KeeperStatus.
struct Query {
  static constexpr Type kType = Type::kQuery;

  void Each(this auto&, auto&&) {}
};

/// gantryctl -> keeper: replace the engine by `engine` (empty: the same path).
/// The new one is started beside the old, which ends when the new one has said
/// Hello. Answer: Upgraded once the new engine is in charge, Failed
/// (kFailedPrecondition) when it ended or did not say Hello in time; then the old one goes on.
struct Upgrade {
  static constexpr Type kType = Type::kUpgrade;

  std::string engine;

  void Each(this auto& self, auto&& field) { field(1, self.engine); }
};

/// keeper -> gantryctl: the new engine is in charge.
struct Upgraded {
  static constexpr Type kType = Type::kUpgraded;

  int32_t engine_pid = 0;

  void Each(this auto& self, auto&& field) { field(1, self.engine_pid); }
};

/// keeper -> anyone: why there is no other answer.
struct Failed {
  static constexpr Type kType = Type::kFailed;

  /// A gantry::Code.
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.code);
    field(2, self.message);
  }
};

// --- Hand-over ---------------------------------------------------------------

/// engine -> keeper, first of all: ready to take over. Everything the keeper
/// knows follows. A keeper of another `version` closes the link.
struct Hello {
  static constexpr Type kType = Type::kHello;

  uint32_t version = kProtocolVersion;
  int32_t pid = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.version);
    field(2, self.pid);
  }
};

/// keeper -> engine: answer to Hello.
struct Welcome {
  static constexpr Type kType = Type::kWelcome;

  uint32_t version = kProtocolVersion;
  int32_t keeper_pid = 0;
  /// 1 for the first engine of this keeper, then counting up.
  uint64_t generation = 0;
  /// How the engine before this one ended (a wait status); unset for the first.
  std::optional<int32_t> previous_wait_status;
  /// $GANTRY_RUN_DIR as the keeper uses it.
  std::string run_dir;

  void Each(this auto& self, auto&& field) {
    field(1, self.version);
    field(2, self.keeper_pid);
    field(3, self.generation);
    field(4, self.previous_wait_status);
    field(5, self.run_dir);
  }
};

/// keeper -> engine: containerd announced an instance (or: it is in the snapshot).
/// Always sent before the first Request that can concern it.
struct InstanceAdded {
  static constexpr Type kType = Type::kInstanceAdded;

  /// The keeper's name for it; never used twice by one keeper.
  uint64_t number = 0;
  Announce announce;
  /// The address its socket listens on, shared by the instances of a group.
  std::string address;
  /// When it was announced, nanoseconds since 1970.
  int64_t announced_at_ns = 0;
  /// A Forget was received for it: only containerd's `delete` is outstanding.
  bool forgotten = false;
  /// With `forgotten`: what that Forget said.
  uint32_t pid = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.number);
    field(2, self.announce);
    field(3, self.address);
    field(4, self.announced_at_ns);
    field(5, self.forgotten);
    field(6, self.pid);
    field(7, self.status);
    field(8, self.exited_at_ns);
  }
};

/// keeper -> engine: the instance is gone for containerd (`delete` was answered,
/// it was announced anew, or it was a member of a group whose last announced instance is
/// gone). What the engine still has of it is to be freed.
struct InstanceRemoved {
  static constexpr Type kType = Type::kInstanceRemoved;

  uint64_t number = 0;

  void Each(this auto& self, auto&& field) { field(1, self.number); }
};

/// keeper -> engine: names in the descriptor store.
struct StoredNames {
  static constexpr Type kType = Type::kStoredNames;

  std::vector<std::string> names;

  void Each(this auto& self, auto&& field) { field(1, self.names); }
};

/// keeper -> engine: that was all; replayed requests follow, then live ones.
struct SnapshotEnd {
  static constexpr Type kType = Type::kSnapshotEnd;

  void Each(this auto&, auto&&) {}
};

/// engine -> keeper: a container of the pod at `address` that containerd created without a
/// `start` of its own (shim version 3). It is an instance like the others, in the group of
/// that socket, with the rest of the Announce taken from the group's first instance; no
/// `delete` comes for it, so Forget removes it at once. Answer: MemberAdded.
/// Again: the instance that is there.
struct AddMember {
  static constexpr Type kType = Type::kAddMember;

  uint64_t tag = 0;
  std::string address;
  std::string id;
  std::string bundle;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.address);
    field(3, self.id);
    field(4, self.bundle);
  }
};

/// keeper -> engine. No InstanceAdded is sent for it until the next snapshot.
struct MemberAdded {
  static constexpr Type kType = Type::kMemberAdded;

  uint64_t tag = 0;
  InstanceAdded instance;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.instance);
    field(3, self.code);
    field(4, self.message);
  }
};

// --- containerd's requests -----------------------------------------------------

/// keeper -> engine: one unary ttrpc request. Kept by the keeper until its
/// Response was handed over; after an engine restart it comes again with `replay`.
struct Request {
  static constexpr Type kType = Type::kRequest;

  /// Never used twice by one keeper.
  uint64_t connection = 0;
  uint32_t stream = 0;
  /// The socket it came on, as InstanceAdded::address, and what that socket stands
  /// for. `ns` is the truth about the namespace. Empty `ns`: the operator's socket
  /// ($GANTRY_RUN_DIR/gantry.sock).
  std::string address;
  std::string ns;
  std::string grpc_address;
  /// The ttrpc Request message, undecoded.
  std::string payload;
  /// An earlier engine may have begun it.
  bool replay = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.connection);
    field(2, self.stream);
    field(3, self.address);
    field(4, self.ns);
    field(5, self.grpc_address);
    field(6, self.payload);
    field(7, self.replay);
  }
};

/// engine -> keeper: the answer to a Request; ignored when there is none such
/// (the connection was closed meanwhile).
struct Response {
  static constexpr Type kType = Type::kResponse;

  uint64_t connection = 0;
  uint32_t stream = 0;
  /// The ttrpc Response message, at most 4 MiB.
  std::string payload;

  void Each(this auto& self, auto&& field) {
    field(1, self.connection);
    field(2, self.stream);
    field(3, self.payload);
  }
};

/// keeper -> engine: nobody waits any longer for answers on this connection.
/// Sent only for connections of which the engine saw a Request.
struct ConnectionClosed {
  static constexpr Type kType = Type::kConnectionClosed;

  uint64_t connection = 0;

  void Each(this auto& self, auto&& field) { field(1, self.connection); }
};

/// keeper -> engine: containerd asks to end the instance. Answer: DeleteDone
/// within 3 s, else the keeper kills by the plan of the last Protect. Not sent for
/// forgotten instances.
struct DeleteCall {
  static constexpr Type kType = Type::kDeleteCall;

  uint64_t tag = 0;
  uint64_t instance = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.instance);
  }
};

/// engine -> keeper: the instance has ended and its processes are gone. The
/// keeper answers containerd and sends InstanceRemoved.
struct DeleteDone {
  static constexpr Type kType = Type::kDeleteDone;

  uint64_t tag = 0;
  /// `kNoPid` where it never had a process.
  uint32_t pid = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;
  /// Not 0 (a gantry::Code): the engine could not; the keeper does what it can.
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.pid);
    field(3, self.status);
    field(4, self.exited_at_ns);
    field(5, self.code);
    field(6, self.message);
  }
};

// --- Processes ---------------------------------------------------------------

/// One resource limit, as setrlimit(2) takes it.
struct Rlimit {
  int32_t resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.resource);
    field(2, self.soft);
    field(3, self.hard);
  }
};

/// A descriptor of the message that the child joins as a namespace.
struct JoinNamespace {
  /// Index into the message's descriptors.
  uint32_t fd_index = 0;
  /// CLONE_NEWNET and so on; no pid namespaces.
  uint32_t kind = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.fd_index);
    field(2, self.kind);
  }
};

/// engine -> keeper: start a program as a child of the keeper. Answer: Spawned.
/// Its exit is always recorded and reported (see Exit).
///
/// The child: signals unblocked and default, only the descriptors named here,
/// /dev/null on 0, 1, 2 where none is named for them.
struct Spawn {
  static constexpr Type kType = Type::kSpawn;

  uint64_t tag = 0;
  /// Absolute path of the program.
  std::string path;
  std::vector<std::string> argv;
  /// "NAME=value"; the whole environment.
  std::vector<std::string> env;
  /// Empty: "/".
  std::string cwd;
  /// Parallel to the message's descriptors: the number that each gets in the child,
  /// -1 for one that is only referred to by an index below.
  std::vector<int32_t> fd_targets;
  bool new_session = false;
  /// Index of the terminal that becomes the controlling one (implies new_session).
  std::optional<uint32_t> controlling_terminal;
  /// Index of a cgroup v2 directory that the child is born in.
  std::optional<uint32_t> cgroup_fd;
  /// cgroup v1 (and hybrid): `cgroup.procs` files that the child writes itself
  /// into before the program runs.
  std::vector<std::string> cgroup_procs;
  /// Joined in this order, after the cgroups.
  std::vector<JoinNamespace> join;
  std::vector<Rlimit> rlimits;
  /// Unset: as the keeper was started with.
  std::optional<int32_t> oom_score_adj;
  std::optional<uint32_t> uid;
  /// Set: supplementary groups are dropped.
  std::optional<uint32_t> gid;
  bool no_new_privs = false;
  /// Finds the process again after an engine restart (NamedSpawn). Empty: it cannot be found.
  std::string name;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.path);
    field(3, self.argv);
    field(4, self.env);
    field(5, self.cwd);
    field(6, self.fd_targets);
    field(7, self.new_session);
    field(8, self.controlling_terminal);
    field(9, self.cgroup_fd);
    field(10, self.cgroup_procs);
    field(11, self.join);
    field(12, self.rlimits);
    field(13, self.oom_score_adj);
    field(14, self.uid);
    field(15, self.gid);
    field(16, self.no_new_privs);
    field(17, self.name);
  }
};

/// keeper -> engine: the process runs, or why not. Descriptors on success: its pidfd.
struct Spawned {
  static constexpr Type kType = Type::kSpawned;

  uint64_t tag = 0;
  int32_t pid = 0;
  /// Clock ticks since boot (/proc/PID/stat, field 22).
  uint64_t start_time = 0;
  /// Not 0 (a gantry::Code): there is no process.
  int32_t code = 0;
  int32_t sys_errno = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.pid);
    field(3, self.start_time);
    field(4, self.code);
    field(5, self.sys_errno);
    field(6, self.message);
  }
};

/// engine -> keeper: the exit of this process matters, too. For processes that came
/// to the keeper as orphans (a container's init started by an OCI runtime). Also right
/// after its death: the records of the last 1,024 unnamed orphans are kept for that.
/// Answer: Adopted, and an Exit (before or after it) when it has ended.
struct Adopt {
  static constexpr Type kType = Type::kAdopt;

  int32_t pid = 0;
  /// 0: the newest process of that pid, alive or just reaped.
  uint64_t start_time = 0;
  uint64_t tag = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
    field(3, self.tag);
  }
};

/// keeper -> engine: it is watched, or its Exit is on record; or kNotFound.
struct Adopted {
  static constexpr Type kType = Type::kAdopted;

  uint64_t tag = 0;
  uint64_t start_time = 0;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.start_time);
    field(3, self.code);
    field(4, self.message);
  }
};

/// keeper -> engine, in a snapshot: a process that was spawned with a name and whose exit
/// was not acknowledged.
struct NamedSpawn {
  static constexpr Type kType = Type::kNamedSpawn;

  std::string name;
  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.pid);
    field(3, self.start_time);
  }
};

/// keeper -> engine: a spawned or adopted process ended. Kept, and sent again to
/// the next engine, until ExitAck.
struct Exit {
  static constexpr Type kType = Type::kExit;

  int32_t pid = 0;
  uint64_t start_time = 0;
  /// As wait(2) gives it.
  int32_t wait_status = 0;
  /// When the keeper saw it, nanoseconds since 1970.
  int64_t exited_at_ns = 0;
  int64_t user_us = 0;
  int64_t system_us = 0;
  int64_t max_rss_kib = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
    field(3, self.wait_status);
    field(4, self.exited_at_ns);
    field(5, self.user_us);
    field(6, self.system_us);
    field(7, self.max_rss_kib);
  }
};

/// engine -> keeper: the Exit of this process is recorded elsewhere; forget it.
/// For a process that lives: its exit does not matter any more.
struct ExitAck {
  static constexpr Type kType = Type::kExitAck;

  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
  }
};

// --- Descriptor store ------------------------------------------------------------

/// What the keeper keeps of a descriptor that it is given.
enum class StoreAs : uint32_t {
  /// The descriptor itself.
  kItself = 0,
  /// An end of the fifo that it names (O_PATH), which the keeper opens: so the
  /// fifo's other side never sees it open for a moment only, whenever the engine
  /// is killed. A write end also where nobody reads yet.
  kReadEnd = 1,
  kWriteEnd = 2,
};

/// engine -> keeper: keep the message's descriptors, in place of what was there
/// under their names. After an error some of them may be kept. Answer: PutDone.
struct Put {
  static constexpr Type kType = Type::kPut;

  uint64_t tag = 0;
  /// One for each descriptor, of 1 to 256 bytes.
  std::vector<std::string> names;
  /// StoreAs, one for each descriptor; those that are missing: kItself.
  std::vector<uint32_t> as;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.names);
    field(3, self.as);
  }
};

/// keeper -> engine: kept, or why not (kResourceExhausted when the store is full).
struct PutDone {
  static constexpr Type kType = Type::kPutDone;

  uint64_t tag = 0;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.code);
    field(3, self.message);
  }
};

/// engine -> keeper: a second descriptor of what is stored. Answer: Taken.
struct Take {
  static constexpr Type kType = Type::kTake;

  uint64_t tag = 0;
  std::string name;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.name);
  }
};

/// keeper -> engine: with the descriptor, which stays stored; or kNotFound.
struct Taken {
  static constexpr Type kType = Type::kTaken;

  uint64_t tag = 0;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.code);
    field(3, self.message);
  }
};

/// engine -> keeper: close what is stored under `name`. No answer; again: nothing.
struct Drop {
  static constexpr Type kType = Type::kDrop;

  std::string name;

  void Each(this auto& self, auto&& field) { field(1, self.name); }
};

// --- Last resort -------------------------------------------------------------------

/// A process that is not confused with a later one of the same pid.
struct ProcessRef {
  int32_t pid = 0;
  uint64_t start_time = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.pid);
    field(2, self.start_time);
  }
};

/// What must die for an instance to have ended.
struct Plan {
  /// Absent: it has no process yet.
  std::optional<ProcessRef> init;
  /// Killed besides init: VMM, sentry, gofers, exec'ed processes without a cgroup.
  std::vector<ProcessRef> processes;
  /// Directories whose processes are all this instance's: cgroup.kill where there is
  /// one (v2), else every process listed there and below.
  std::vector<std::string> cgroup_dirs;
  /// Mount points of ours, for the record (containerd unmounts the rootfs itself).
  std::vector<std::string> mounts;
  /// Removed with all in them once everything is dead: where an OCI runtime keeps
  /// what it knows of the container. The cgroup directories are removed, too.
  std::vector<std::string> state_dirs;

  void Each(this auto& self, auto&& field) {
    field(1, self.init);
    field(2, self.processes);
    field(3, self.cgroup_dirs);
    field(4, self.mounts);
    field(5, self.state_dirs);
  }
};

/// engine -> keeper and, in a snapshot, back: how the keeper alone can end the
/// instance. The newest replaces the one before. No answer.
struct Protect {
  static constexpr Type kType = Type::kProtect;

  uint64_t instance = 0;
  Plan plan;

  void Each(this auto& self, auto&& field) {
    field(1, self.instance);
    field(2, self.plan);
  }
};

/// engine -> keeper: Task/Delete was answered for the instance. containerd's
/// `delete` that follows gets these values at once, without the engine.
/// Held for some minutes; a forgotten instance that was not deleted by then is removed.
struct Forget {
  static constexpr Type kType = Type::kForget;

  uint64_t instance = 0;
  uint32_t pid = 0;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.instance);
    field(2, self.pid);
    field(3, self.status);
    field(4, self.exited_at_ns);
  }
};

// --- What gantryctl is told ------------------------------------------------------------

/// The engine as the keeper sees it.
enum class EngineState : uint32_t {
  kNever = 0,     ///< Not started yet: nothing was announced.
  kStarting = 1,  ///< Running, no Hello yet.
  kUp = 2,
  kWaiting = 3,  ///< It ended; the next start is due after the backoff.
};

/// keeper -> gantryctl: the answer to Query.
struct KeeperStatus {
  static constexpr Type kType = Type::kKeeperStatus;

  int32_t keeper_pid = 0;
  int64_t started_at_ns = 0;
  std::string engine_path;
  int32_t engine_pid = 0;
  /// An EngineState.
  uint32_t engine_state = 0;
  uint64_t engine_starts = 0;
  std::vector<InstanceAdded> instances;
  uint64_t sockets = 0;
  uint64_t connections = 0;
  /// Requests not yet answered, and the bytes kept for them.
  uint64_t requests_waiting = 0;
  uint64_t request_bytes = 0;
  /// Since the keeper's start.
  uint64_t requests_total = 0;
  uint64_t requests_refused = 0;
  uint64_t requests_replayed = 0;
  uint64_t processes_watched = 0;
  uint64_t exits_kept = 0;
  uint64_t descriptors_stored = 0;
  uint64_t tombstones = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.keeper_pid);
    field(2, self.started_at_ns);
    field(3, self.engine_path);
    field(4, self.engine_pid);
    field(5, self.engine_state);
    field(6, self.engine_starts);
    field(7, self.instances);
    field(8, self.sockets);
    field(9, self.connections);
    field(10, self.requests_waiting);
    field(11, self.request_bytes);
    field(12, self.requests_total);
    field(13, self.requests_refused);
    field(14, self.requests_replayed);
    field(15, self.processes_watched);
    field(16, self.exits_kept);
    field(17, self.descriptors_stored);
    field(18, self.tombstones);
  }
};

}  // namespace gantry::link
