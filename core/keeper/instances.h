// SPDX-License-Identifier: Apache-2.0
//
// What containerd has announced and not yet deleted. An instance whose
// Task/Delete was answered ("forgotten") is a tombstone: containerd's `delete`
// still comes, and gets the values from here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gantry/toolkit/process/process_id.h>

#include "core/async/loop.h"
#include "core/keeper/instance.h"
#include "core/keeper/state.h"
#include "core/link/messages.h"
#include "core/os/process.h"

namespace gantry::keeper {

/// Thread: the keeper's only one.
class Instances {
 public:
  static constexpr size_t kMax = 16384;
  static constexpr size_t kMaxTombstones = 4096;

  Instance* Find(const std::string& grpc_address, const std::string& ns, const std::string& id);
  Instance* Find(uint64_t number);
  Instance& Add(link::Announce announce, std::string socket_path, bool member);
  /// How it is ended without an engine.
  void SetLastResort(Instance& instance, link::LastResort last_resort);
  /// Those whose last resort names this init.
  std::vector<Instance*> OfInit(ProcessId init);
  /// Errors: none; an unknown number is ignored.
  void Remove(uint64_t number);

  /// The socket of the instance whose share this is (`link::ShareOf`). "": there is none.
  std::string GroupOf(std::string_view share) const;
  /// The instances that share this socket.
  std::vector<Instance*> At(const std::string& socket_path);
  /// The limits that the oldest instance of the group at an address was announced with, of those
  /// that told any. Empty: there is none.
  std::vector<link::Rlimit> RlimitsAt(const std::string& address) const;
  /// So many of them were announced (are no members).
  size_t AnnouncedAt(const std::string& socket_path) const;

  /// The tombstone that has waited longest, if there are more than `kMaxTombstones`.
  Instance* SurplusTombstone();

  const std::map<uint64_t, Instance>& all() const { return instances_; }

  std::map<uint64_t, Instance>& all() { return instances_; }

  size_t tombstones() const;

  state::Instances Save() const;
  /// Only into an empty one. Tombstones have no timers then.
  void Restore(const state::Instances& state);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  static Key KeyOf(const link::Announce& announce) {
    return {announce.grpc_address, announce.ns, announce.id};
  }

  void LeaveInit(const Instance& instance);

  uint64_t next_ = 1;
  std::map<uint64_t, Instance> instances_;
  std::map<Key, uint64_t> numbers_;
  std::map<std::string, std::set<uint64_t>> at_;
  /// By the init of their last resort.
  std::map<ProcessId, std::set<uint64_t>> of_init_;
};

/// 32 hexadecimal digits for a socket that serves `group` of one namespace of one containerd.
std::string SocketName(const std::string& grpc_address, const std::string& ns,
                       const std::string& group);

}  // namespace gantry::keeper
