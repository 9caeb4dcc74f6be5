// SPDX-License-Identifier: Apache-2.0
//
// The containers that there are: by their ids, and by the sandboxes that they stand in.
//
// A container is here from the Create (or, after a restart, from the keeper's announcement) until
// nothing of it is left. Whoever has only a reference finds here whether it still counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gantry/ids.h>

#include "core/task/instances.h"

namespace gantry::task {

struct Container;
struct SandboxEntry;
using ContainerPtr = std::shared_ptr<Container>;
using SandboxEntryPtr = std::shared_ptr<SandboxEntry>;

/// Lists are in the order of the keys, and copies: entries may come and go while they are gone
/// through. Thread: loop.
class Containers {
 public:
  /// From now on it is found. One that had its key is not found any more.
  void Enter(ContainerPtr container);
  /// A new one.
  ContainerPtr Enter(const ContainerId& id, GroupPtr group, uint64_t instance);
  /// It is not found any more. Where another has its key, or nobody: nothing.
  void Leave(const Container& container);

  size_t size() const { return by_key_.size(); }

  /// Null: there is none.
  ContainerPtr Find(const InstanceKey& key) const;
  /// By the keeper's number. Null: there is none.
  ContainerPtr FindInstance(uint64_t number) const;
  /// The same one, to be held. Null: it has left.
  ContainerPtr SharedOf(const Container& container) const;
  /// Another one that has this directory among those of its cgroups. Null: none.
  ContainerPtr FindOtherIn(const std::string& cgroup_dir, const Container& but) const;
  std::vector<ContainerPtr> All() const;

  /// Puts it into a sandbox, or, with null, out of the one that it is in. Sets
  /// `container.sandbox`: nobody else does.
  void SetSandbox(Container& container, SandboxEntryPtr sandbox);
  /// Those that stand in it, also those that just open it.
  std::vector<ContainerPtr> MembersOf(const SandboxEntry& sandbox) const;
  /// The prefixes of the sandboxes (`Container::sandbox_prefix`) of all.
  std::set<std::string> SandboxPrefixes() const;
  /// Of all but one that have a sandbox or whose init's process is watched.
  std::set<std::string> PrefixesInUse(const Container& but) const;

 private:
  using Members = std::map<InstanceKey, ContainerPtr>;

  void LeaveMembers(const Container& container, const InstanceKey& key);

  std::map<InstanceKey, ContainerPtr> by_key_;
  /// Of sandboxes with members only. Those that have left are in none.
  std::map<const SandboxEntry*, Members> by_sandbox_;
};

}  // namespace gantry::task
