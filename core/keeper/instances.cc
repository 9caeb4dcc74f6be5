// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/instances.h"

#include <algorithm>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/toolkit/process/process_id.h>

#include "core/keeper/note.h"
#include "core/link/name_owner.h"

namespace gantry::keeper {
namespace {

constexpr std::string_view kScheme = "unix://";

/// With the avalanche of splitmix64 behind it.
uint64_t Hash(uint64_t seed, std::string_view text) {
  uint64_t hash = Fingerprint(text, seed);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

}  // namespace

std::string SocketName(const std::string& grpc_address, const std::string& ns,
                       const std::string& group) {
  std::string text = grpc_address;
  text.append(1, '\0').append(ns).append(1, '\0').append(group);
  return Format("{:016x}{:016x}", Hash(0, text), Hash(0x9e3779b97f4a7c15, text));
}

Instance* Instances::Find(const std::string& grpc_address, const std::string& ns,
                          const std::string& id) {
  const auto found = numbers_.find({grpc_address, ns, id});
  return found == numbers_.end() ? nullptr : Find(found->second);
}

Instance* Instances::Find(uint64_t number) {
  const auto found = instances_.find(number);
  return found == instances_.end() ? nullptr : &found->second;
}

Instance& Instances::Add(link::Announce announce, std::string socket_path, bool member) {
  const uint64_t number = next_++;
  numbers_[KeyOf(announce)] = number;
  at_[socket_path].insert(number);
  Instance& instance = instances_[number];
  instance.told.number = number;
  instance.told.announce = std::move(announce);
  instance.told.address = std::string(kScheme) + socket_path;
  instance.told.announced_at_ns = NowNs();
  instance.member = member;
  instance.socket_path = std::move(socket_path);
  return instance;
}

void Instances::SetLastResort(Instance& instance, link::LastResort last_resort) {
  LeaveInit(instance);
  instance.last_resort = std::move(last_resort);
  if (const auto& init = instance.last_resort.init) {
    of_init_[{init->pid, init->start_time}].insert(instance.told.number);
  }
}

void Instances::LeaveInit(const Instance& instance) {
  const auto& init = instance.last_resort.init;
  const auto found = init ? of_init_.find({init->pid, init->start_time}) : of_init_.end();
  if (found != of_init_.end()) {
    found->second.erase(instance.told.number);
    if (found->second.empty()) {
      of_init_.erase(found);
    }
  }
}

std::vector<Instance*> Instances::OfInit(ProcessId init) {
  std::vector<Instance*> found;
  if (const auto of = of_init_.find(init); of != of_init_.end()) {
    for (const uint64_t number : of->second) {
      found.push_back(&instances_.at(number));
    }
  }
  return found;
}

void Instances::Remove(uint64_t number) {
  const auto found = instances_.find(number);
  if (found == instances_.end()) {
    return;
  }
  LeaveInit(found->second);
  numbers_.erase(KeyOf(found->second.told.announce));
  const auto at = at_.find(found->second.socket_path);
  at->second.erase(number);
  if (at->second.empty()) {
    at_.erase(at);
  }
  instances_.erase(found);
}

std::string Instances::GroupOf(std::string_view share) const {
  const auto found = instances_.find(link::InstanceOfShare(share));
  return found == instances_.end() ? std::string() : found->second.socket_path;
}

std::vector<Instance*> Instances::At(const std::string& socket_path) {
  std::vector<Instance*> found;
  if (const auto at = at_.find(socket_path); at != at_.end()) {
    for (const uint64_t number : at->second) {
      found.push_back(&instances_.at(number));
    }
  }
  return found;
}

std::vector<link::Rlimit> Instances::RlimitsAt(const std::string& address) const {
  const auto at =
      address.starts_with(kScheme) ? at_.find(address.substr(kScheme.size())) : at_.end();
  if (at != at_.end()) {
    for (const uint64_t number : at->second) {
      const auto& rlimits = instances_.at(number).told.announce.rlimits;
      if (!rlimits.empty()) {
        return rlimits;
      }
    }
  }
  return {};
}

size_t Instances::AnnouncedAt(const std::string& socket_path) const {
  const auto at = at_.find(socket_path);
  return at == at_.end()
             ? 0
             : static_cast<size_t>(std::ranges::count_if(
                   at->second, [this](uint64_t number) { return !instances_.at(number).member; }));
}

state::Instances Instances::Save() const {
  state::Instances state;
  state.next = next_;
  for (const auto& [number, one] : instances_) {
    state.all.push_back(one);
  }
  return state;
}

void Instances::Restore(const state::Instances& state) {
  next_ = state.next;
  for (const Instance& one : state.all) {
    const uint64_t number = one.told.number;
    numbers_[KeyOf(one.told.announce)] = number;
    at_[one.socket_path].insert(number);
    Instance& instance = instances_[number];
    instance = one;
    SetLastResort(instance, one.last_resort);
  }
}

Instance* Instances::SurplusTombstone() {
  if (instances_.size() <= kMaxTombstones || tombstones() <= kMaxTombstones) {
    return nullptr;
  }
  const auto oldest =
      std::ranges::find_if(instances_, [](const auto& item) { return item.second.told.forgotten; });
  return &oldest->second;
}

size_t Instances::tombstones() const {
  return static_cast<size_t>(std::ranges::count_if(
      instances_, [](const auto& item) { return item.second.told.forgotten; }));
}

}  // namespace gantry::keeper
