// SPDX-License-Identifier: Apache-2.0
//
// What the keeper has announced: the instances that containerd has started a
// shim for, and whose socket each one's calls come on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/link/handover_messages.h"
#include "core/task/group.h"

namespace gantry::task {

/// Thread: loop.
class Instances {
 public:
  /// Its group. Errors: kInvalidArgument: its namespace is none.
  Result<GroupPtr> Add(link::InstanceAdded instance);

  struct Removed {
    link::InstanceAdded instance;
    GroupPtr group;
    /// No other instance is in the group.
    bool last = false;
  };

  /// None: there was no such instance.
  std::optional<Removed> Remove(uint64_t number);

  /// Errors: kInternal: no instance was announced at that address.
  Result<GroupPtr> GroupAt(const std::string& address) const;
  /// Of its group; null: there is none.
  async::AccountPtr AccountAt(const std::string& address) const;
  /// Null: there is none.
  const link::InstanceAdded* Find(uint64_t number) const;
  /// The number of the one that is not forgotten. 0: there is none.
  uint64_t NumberOf(const InstanceKey& key) const;
  /// One that has ended and that containerd has not heard the last of. Null: none.
  const link::InstanceAdded* FindForgotten(const std::string& address, std::string_view id) const;

  const std::map<uint64_t, link::InstanceAdded>& all() const { return instances_; }

 private:
  std::map<uint64_t, link::InstanceAdded> instances_;
  std::map<InstanceKey, uint64_t> number_of_;
  std::map<std::string, GroupPtr> groups_;
  const async::AccountPtr all_exec_specs_ = std::make_shared<async::Account>("all");
};

}  // namespace gantry::task
