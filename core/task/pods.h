// SPDX-License-Identifier: Apache-2.0
//
// What the Task service has to know of pods without a pause container. Who has them stands above
// it (core/pod) and implements this.
#pragma once

#include <set>
#include <string>

#include <gantry/error.h>

namespace gantry::task {

/// Thread: loop.
class Pods {
 public:
  Pods(const Pods&) = delete;
  Pods& operator=(const Pods&) = delete;
  virtual ~Pods() = default;

  /// Whether a container may be made at this address: no pod is there, or one that
  /// runs. Errors: kFailedPrecondition, kUnavailable.
  virtual Status CheckJoin(const std::string& address) const = 0;
  /// Adds what the pods' names at the keeper begin with.
  virtual void AddPrefixes(std::set<std::string>& used) const = 0;

 protected:
  Pods() = default;
};

}  // namespace gantry::task
