// SPDX-License-Identifier: Apache-2.0
#include "core/pod/pod_map.h"

#include <utility>

#include "core/task/sandboxes.h"

namespace gantry::task {

void PodMap::Enter(PodPtr pod) { pods_[pod->group->address] = std::move(pod); }

void PodMap::Leave(const Pod& pod) {
  const auto found = pods_.find(pod.group->address);
  if (found != pods_.end() && found->second.get() == &pod) {
    pods_.erase(found);
  }
}

PodPtr PodMap::Find(const std::string& address) const {
  const auto found = pods_.find(address);
  return found == pods_.end() ? nullptr : found->second;
}

PodPtr PodMap::FindInstance(uint64_t number) const {
  for (const auto& [address, pod] : pods_) {
    if (pod->instance == number) {
      return pod;
    }
  }
  return nullptr;
}

std::vector<PodPtr> PodMap::All() const {
  std::vector<PodPtr> all;
  for (const auto& [address, pod] : pods_) {
    if (pod->life.state() != State::kNone) {
      all.push_back(pod);
    }
  }
  return all;
}

Status PodMap::CheckJoin(const std::string& address) const {
  const PodPtr there = Find(address);
  if (!there) {
    return {};
  }
  const Pod& pod = *there;
  if (pod.life.effective_state() != State::kRunning) {
    return Fail(Code::kFailedPrecondition, "sandbox '{}' is {}, not running", pod.id.str(),
                store::StateName(pod.life.effective_state()));
  }
  if (!pod.entry || !pod.entry->sandbox) {
    return Fail(Code::kUnavailable, "sandbox '{}': its backend is not there", pod.id.str());
  }
  return {};
}

void PodMap::AddPrefixes(std::set<std::string>& used) const {
  for (const auto& [address, pod] : pods_) {
    used.insert(pod->prefix);
  }
}

}  // namespace gantry::task
