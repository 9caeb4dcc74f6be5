// SPDX-License-Identifier: Apache-2.0
//
// What outlives this engine of a container: its record on disk, by which the next engine
// takes it up; the keeper's last resort, by which it is ended where no engine comes; and, once it
// is gone, what the keeper answers to `delete`.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gantry/error.h>
#include <gantry/process.h>

#include "core/async/co.h"
#include "core/store/record.h"

namespace gantry::backend {
struct Services;
}  // namespace gantry::backend

namespace gantry::task {

struct Container;

/// Containers outlive the calls about them. Thread: loop.
class Records {
 public:
  /// Owner: `services` outlive it.
  explicit Records(const backend::Services& services) : services_(services) {}

  /// Writes the state that it has now; returns when that, or a later one, is on disk.
  /// `most`: so many bytes its record may have. Errors: of `store::Write`.
  async::Task<Status> Save(Container& container, size_t most = store::kMaxRecordBytes);
  /// Its record goes for good; what is written later is not. An error says nothing: containerd
  /// removes the bundle, and with it the record.
  async::Task<void> Remove(const Container& container);

  /// Tells the keeper how it can end it. One that is just taken up after a restart: nothing, for
  /// the keeper has the last resort of the engine before, which is whole.
  void Protect(const Container& container);
  /// There is nothing of that instance to end.
  void Unprotect(uint64_t instance);
  /// Tells the keeper what `delete` of it is to be answered from now on. One without an end is
  /// told to have ended now, with 0.
  void Forget(const Container& container);

 private:
  const backend::Services& services_;
};

}  // namespace gantry::task
