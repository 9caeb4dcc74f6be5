// SPDX-License-Identifier: Apache-2.0
//
// Three maps that are kept alike: instances by the keeper's number, those numbers by ids, and
// groups by the address of their socket. A group goes with its last instance.
#include "core/task/instances.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "core/link/messages.h"
#include "core/task/sandboxes.h"

namespace gantry::task {

InstanceKey KeyOf(const Group& group, std::string_view id) {
  return InstanceKey{group.grpc_address, group.ns.str(), std::string(id)};
}

Result<GroupPtr> Instances::Add(link::InstanceAdded instance) {
  const link::Announce& announce = instance.announce;
  GANTRY_TRY(Namespace ns, Namespace::Parse(announce.ns));
  GroupPtr& group = groups_[instance.address];
  if (!group) {
    auto made = std::make_shared<Group>();
    made->address = instance.address;
    made->grpc_address = announce.grpc_address;
    made->ttrpc_address = announce.ttrpc_address;
    made->ns = std::move(ns);
    made->id = announce.group.empty() ? announce.id : announce.group;
    made->handler = announce.handler;
    made->options_type_url = announce.options_type_url;
    made->options = announce.options;
    made->account = std::make_shared<async::Account>(made->id);
    made->exec_specs = std::make_shared<async::Account>(made->id);
    made->all_exec_specs = all_exec_specs_;
    group = std::move(made);
  }
  if (!instance.forgotten) {
    number_of_[KeyOf(*group, announce.id)] = instance.number;
  }
  GroupPtr answer = group;
  instances_[instance.number] = std::move(instance);
  return answer;
}

std::optional<Instances::Removed> Instances::Remove(uint64_t number) {
  auto found = instances_.extract(number);
  if (!found) {
    return std::nullopt;
  }
  Removed removed;
  removed.instance = std::move(found.mapped());
  const std::string& address = removed.instance.address;
  removed.group = groups_[address];
  const InstanceKey key = KeyOf(*removed.group, removed.instance.announce.id);
  if (const auto entry = number_of_.find(key);
      entry != number_of_.end() && entry->second == number) {
    number_of_.erase(entry);
  }
  removed.last = std::ranges::none_of(instances_ | std::views::values,
                                      [&](const auto& other) { return other.address == address; });
  if (removed.last) {
    groups_.erase(address);
  }
  return removed;
}

Result<GroupPtr> Instances::GroupAt(const std::string& address) const {
  const auto found = groups_.find(address);
  if (found == groups_.end()) {
    // containerd may still hold a container whose pod it has removed.
    return Fail(Code::kNotFound, "call on '{}': nothing is there any more: not found", address);
  }
  return found->second;
}

async::AccountPtr Instances::AccountAt(const std::string& address) const {
  const auto found = groups_.find(address);
  return found == groups_.end() ? nullptr : found->second->account;
}

const link::InstanceAdded* Instances::Find(uint64_t number) const {
  const auto found = instances_.find(number);
  return found == instances_.end() ? nullptr : &found->second;
}

uint64_t Instances::NumberOf(const InstanceKey& key) const {
  const auto found = number_of_.find(key);
  return found == number_of_.end() ? 0 : found->second;
}

const link::InstanceAdded* Instances::FindForgotten(const std::string& address,
                                                    std::string_view id) const {
  for (const auto& [number, instance] : instances_) {
    if (instance.forgotten && instance.address == address && instance.announce.id == id) {
      return &instance;
    }
  }
  return nullptr;
}

}  // namespace gantry::task
