// SPDX-License-Identifier: Apache-2.0
//
// The pods that there are, one for each group at most, by the address of its socket.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/pod/pod.h"
#include "core/task/pods.h"

namespace gantry::task {

/// Thread: loop.
class PodMap final : public Pods {
 public:
  /// From now on it is found. One that was at its address is not found any more.
  void Enter(PodPtr pod);
  /// It is not found any more. Where another is at its address, or nobody: nothing.
  void Leave(const Pod& pod);

  void Clear() { pods_.clear(); }

  /// There is a pod at this address, perhaps one without a backend.
  bool Has(const std::string& address) const { return pods_.contains(address); }

  /// Null: there is none.
  PodPtr Find(const std::string& address) const;
  /// By the keeper's number. Null: there is none.
  PodPtr FindInstance(uint64_t number) const;
  /// All that are more than expected.
  std::vector<PodPtr> All() const;

  Status CheckJoin(const std::string& address) const override;
  void AddPrefixes(std::set<std::string>& used) const override;

 private:
  std::map<std::string, PodPtr> pods_;
};

}  // namespace gantry::task
