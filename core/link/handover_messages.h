// SPDX-License-Identifier: Apache-2.0
//
// What a new engine is told, and the instances that come and go later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/control_messages.h"
#include "core/link/message_type.h"

namespace gantry::link {

/// engine -> keeper, of one that is to take another's place, before its Hello: what
/// will it have to take up? Answer: Inventory.
struct Inquire {
  static constexpr Type kType = Type::kInquire;

  void Each(this auto&, auto&&) {}
};

/// keeper -> engine: the bundles of all instances, in several parts.
struct Inventory {
  static constexpr Type kType = Type::kInventory;

  std::vector<std::string> bundles;
  /// Another part follows.
  bool more = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.bundles);
    field(2, self.more);
  }
};

/// engine -> keeper, instead of Hello: it cannot take that up, and ends.
struct Refuse {
  static constexpr Type kType = Type::kRefuse;

  /// For the operator.
  std::string message;

  void Each(this auto& self, auto&& field) { field(1, self.message); }
};

/// engine -> keeper, first of all but those: ready to take over. Everything the keeper
/// knows follows. A keeper of another version than `kProtocolVersion` closes the link.
struct Hello {
  static constexpr Type kType = Type::kHello;

  uint32_t version = 0;
  int32_t pid = 0;
  /// Its loop answers a Ping within this time, else it hangs. 0: it is not asked.
  uint64_t answers_within_ms = 0;
  /// A hanging one is left as it is; else it is ended, and another one started.
  bool keep_hanging = false;
  /// It says Recovering of every group that it takes up, and at the end.
  bool tells_recovery = false;
  /// It understands StreamOpened. Else clients that would stream are refused.
  bool takes_streams = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.version);
    field(2, self.pid);
    field(3, self.answers_within_ms);
    field(4, self.keep_hanging);
    field(5, self.tells_recovery);
    field(6, self.takes_streams);
  }
};

/// keeper -> engine: answer to Hello.
struct Welcome {
  static constexpr Type kType = Type::kWelcome;

  uint32_t version = 0;
  int32_t keeper_pid = 0;
  /// 1 for the first engine of this keeper, then counting up.
  uint64_t generation = 0;
  /// How the engine before this one ended (a wait status); unset for the first.
  std::optional<int32_t> previous_wait_status;
  /// $GANTRY_RUN_DIR as the keeper uses it.
  std::string run_dir;
  /// It wants to hear Recovering. (An older one does not know the message.)
  bool hears_recovery = false;
  /// It knows all fields of Spawn up to `propagation`, and the name of Adopt. (An older one would
  /// start the process without what confines it.)
  bool confines = false;
  /// It knows Spawn's `root_paths`.
  bool fills_roots = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.version);
    field(2, self.keeper_pid);
    field(3, self.generation);
    field(4, self.previous_wait_status);
    field(5, self.run_dir);
    field(6, self.hears_recovery);
    field(7, self.confines);
    field(8, self.fills_roots);
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
  /// So many engines crashed in a row while they took up its group.
  uint32_t deaths = 0;
  /// Too many: the group is not to be taken up. The keeper answers its calls.
  bool left_out = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.number);
    field(2, self.announce);
    field(3, self.address);
    field(4, self.announced_at_ns);
    field(5, self.forgotten);
    field(6, self.pid);
    field(7, self.status);
    field(8, self.exited_at_ns);
    field(9, self.deaths);
    field(10, self.left_out);
  }
};

/// keeper -> engine: the instance is gone for containerd (`delete` was answered,
/// it was announced anew, or it was a member of a group whose last announced instance is
/// gone). What the engine still has of it is to be freed.
struct InstanceRemoved {
  static constexpr Type kType = Type::kInstanceRemoved;

  uint64_t number = 0;
  /// It was such a member: containerd still holds it, and hears of its end from us only.
  bool with_group = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.number);
    field(2, self.with_group);
  }
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

/// engine -> keeper: which groups it takes up, before it touches them, and which are taken up.
/// What the last words of an engine that crashed name is what may have ended it. No answer.
struct Recovering {
  static constexpr Type kType = Type::kRecovering;

  /// Addresses.
  std::vector<std::string> begun;
  std::vector<std::string> done;
  /// All are.
  bool finished = false;

  void Each(this auto& self, auto&& field) {
    field(1, self.begun);
    field(2, self.done);
    field(3, self.finished);
  }
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

}  // namespace gantry::link
