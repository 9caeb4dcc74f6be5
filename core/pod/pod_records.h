// SPDX-License-Identifier: Apache-2.0
//
// What outlives this engine of a pod: as of a container (core/task/records.h).
#pragma once

#include <gantry/error.h>

#include "core/async/co.h"

namespace gantry::backend {
struct Services;
}  // namespace gantry::backend

namespace gantry::task {

struct Pod;

/// Pods outlive the calls about them. Thread: loop.
class PodRecords {
 public:
  /// Owner: `services` outlive it.
  explicit PodRecords(const backend::Services& services) : services_(services) {}

  /// Writes the state that it has now; returns when that, or a later one, is on disk.
  /// Errors: of `store::Write`.
  async::Task<Status> Save(Pod& pod);
  /// Its record goes for good; what is written later is not. An error says nothing: containerd
  /// removes the bundle, and with it the record.
  async::Task<void> Remove(const Pod& pod);
  /// Tells the keeper how it can end it. One that has gone: there is nothing to end any more.
  void Protect(const Pod& pod);
  /// Tells the keeper what `delete` of it is to be answered from now on. One without an end is
  /// told to have ended now, with 0.
  void Forget(const Pod& pod);

 private:
  const backend::Services& services_;
};

}  // namespace gantry::task
