// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/pid_namespaces.h"

#include <utility>

namespace gantry::gvisor {

void PidNamespaces::Add(const ContainerId& id, std::function<bool()> runs) {
  const MutexLock lock(mutex_);
  own_.insert_or_assign(id, std::move(runs));
}

void PidNamespaces::Remove(const ContainerId& id) {
  const MutexLock lock(mutex_);
  own_.erase(id);
}

std::string PidNamespaces::NameOf(const ContainerId& id) { return "container:" + id.str(); }

Result<std::string> PidNamespaces::Shared() const {
  const MutexLock lock(mutex_);
  std::string found;
  for (const auto& [id, runs] : own_) {
    if (!runs()) {
      continue;
    }
    if (!found.empty()) {
      return Fail(Code::kFailedPrecondition,
                  "which container's processes are to be shared is not known: several of the pod "
                  "have their own, and all have the pid of their sentry");
    }
    found = NameOf(id);
  }
  return found;
}

}  // namespace gantry::gvisor
