// SPDX-License-Identifier: Apache-2.0
//
// Two maps that are kept alike: each container by its key, and those of each sandbox.
#include "core/task/containers.h"

#include <algorithm>
#include <utility>

#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

InstanceKey KeyOf(const Container& container) {
  return KeyOf(*container.group, container.id.str());
}

}  // namespace

void Containers::Enter(ContainerPtr container) {
  InstanceKey key = KeyOf(*container);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    LeaveMembers(*found->second, key);
  }
  if (container->sandbox) {
    by_sandbox_[container->sandbox.get()][key] = container;
  }
  by_key_[std::move(key)] = std::move(container);
}

ContainerPtr Containers::Enter(const ContainerId& id, GroupPtr group, uint64_t instance) {
  auto container = std::make_shared<Container>(id, std::move(group));
  container->instance = instance;
  Enter(container);
  return container;
}

void Containers::Leave(const Container& container) {
  const InstanceKey key = KeyOf(container);
  if (const auto found = by_key_.find(key);
      found != by_key_.end() && found->second.get() == &container) {
    const ContainerPtr held = found->second;
    LeaveMembers(container, key);
    by_key_.erase(found);
  }
}

void Containers::LeaveMembers(const Container& container, const InstanceKey& key) {
  const auto members = by_sandbox_.find(container.sandbox.get());
  if (members == by_sandbox_.end()) {
    return;
  }
  members->second.erase(key);
  if (members->second.empty()) {
    by_sandbox_.erase(members);
  }
}

ContainerPtr Containers::Find(const InstanceKey& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

ContainerPtr Containers::FindInstance(uint64_t number) const {
  for (const auto& [key, container] : by_key_) {
    if (container->instance == number) {
      return container;
    }
  }
  return nullptr;
}

ContainerPtr Containers::SharedOf(const Container& container) const {
  ContainerPtr found = Find(KeyOf(container));
  return found.get() == &container ? found : nullptr;
}

ContainerPtr Containers::FindOtherIn(const std::string& cgroup_dir, const Container& but) const {
  for (const auto& [key, other] : by_key_) {
    if (other.get() != &but && std::ranges::contains(other->cgroup_dirs, cgroup_dir)) {
      return other;
    }
  }
  return nullptr;
}

std::vector<ContainerPtr> Containers::All() const {
  std::vector<ContainerPtr> all;
  all.reserve(by_key_.size());
  for (const auto& [key, container] : by_key_) {
    all.push_back(container);
  }
  return all;
}

void Containers::SetSandbox(Container& container, SandboxEntryPtr sandbox) {
  const ContainerPtr here = SharedOf(container);
  const InstanceKey key = KeyOf(container);
  if (here) {
    LeaveMembers(container, key);
  }
  container.sandbox = std::move(sandbox);
  if (here && container.sandbox) {
    by_sandbox_[container.sandbox.get()][key] = here;
  }
}

std::vector<ContainerPtr> Containers::MembersOf(const SandboxEntry& sandbox) const {
  std::vector<ContainerPtr> members;
  if (const auto found = by_sandbox_.find(&sandbox); found != by_sandbox_.end()) {
    for (const auto& [key, container] : found->second) {
      members.push_back(container);
    }
  }
  return members;
}

std::set<std::string> Containers::SandboxPrefixes() const {
  std::set<std::string> prefixes;
  for (const auto& [key, container] : by_key_) {
    prefixes.insert(container->sandbox_prefix);
  }
  return prefixes;
}

std::set<std::string> Containers::PrefixesInUse(const Container& but) const {
  std::set<std::string> prefixes;
  for (const auto& [key, other] : by_key_) {
    if (other.get() != &but && (other->sandbox || (other->init && other->init->host))) {
      prefixes.insert(other->sandbox_prefix);
    }
  }
  return prefixes;
}

}  // namespace gantry::task
