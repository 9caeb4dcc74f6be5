// SPDX-License-Identifier: Apache-2.0
//
// Which containers of a pod have a pid namespace of their own, for a debugger that joins one
// (`kubectl debug --target`).
//
// A sentry knows a namespace by the text that stood in the spec of the container that it was
// made for, and gives another container with the same text the same one (runsc/boot/loader.go).
// containerd names a namespace by a pid, which of all containers here is their sentry's: it does
// not tell which of them is meant.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::gvisor {

/// Where the processes of a container are counted.
enum class PidNamespace {
  /// In the sentry's first one, with all others of the pod.
  kPods,
  kOwn,
  /// In the pod's or in that of another container, both under the same name.
  kShared,
};

/// Of one pod. Thread: any.
class PidNamespaces {
 public:
  /// This container has its own, for as long as `runs` says so. Called under a lock.
  void Add(const ContainerId& id, std::function<bool()> runs);
  void Remove(const ContainerId& id);

  /// The name that the sentry is to know a container's own by.
  static std::string NameOf(const ContainerId& id);

  /// What a container that shares one is to name: empty for the pod's, because no container that
  /// runs has its own. Errors: kFailedPrecondition: several have, and which is meant cannot be
  /// known.
  Result<std::string> Shared() const;

 private:
  mutable Mutex mutex_;
  std::map<ContainerId, std::function<bool()>> own_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::gvisor
