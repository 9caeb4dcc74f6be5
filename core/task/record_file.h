// SPDX-License-Identifier: Apache-2.0
//
// One container's record on disk, written by whichever worker has something to
// save: the newest state wins, also where an older one is written later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/store/record.h"

namespace gantry::task {

/// A copy of the state and its place in the order of changes.
struct RecordVersion {
  uint64_t number = 0;
  store::Record record;
  /// It may have so many bytes.
  size_t most = store::kMaxRecordBytes;
};

/// Thread: `Next` on the loop, `Write` and `Remove` on workers. Outlives its
/// container where a write is under way.
class RecordFile {
 public:
  RecordFile() : shared_(std::make_shared<Shared>()) {}

  /// An engine before this one wrote it, and may have been killed half-way. What that left
  /// goes with the next write, or the removal: so there is never more of it. Thread: loop,
  /// before anything is written.
  void SetInherited() {
    const MutexLock lock(shared_->mutex);
    shared_->inherited = true;
  }

  /// Numbers a state; writes of lower numbers that come later are skipped.
  RecordVersion Next(store::Record record, size_t most = store::kMaxRecordBytes) {
    return RecordVersion{++shared_->next, std::move(record), most};
  }

  /// A function that writes `version`, for a worker.
  auto Writer(RecordVersion version) const {
    return [shared = shared_, version = std::move(version)] { return Write(*shared, version); };
  }

  /// A function that removes the record for good, for a worker.
  auto Remover(std::string bundle) const {
    return [shared = shared_, bundle = std::move(bundle)] { return Remove(*shared, bundle); };
  }

 private:
  struct Shared {
    uint64_t next = 0;
    /// Guards `written` and the file.
    Mutex mutex;
    uint64_t written GANTRY_GUARDED_BY(mutex) = 0;
    bool removed GANTRY_GUARDED_BY(mutex) = false;
    bool inherited GANTRY_GUARDED_BY(mutex) = false;
  };

  static Status Write(Shared& shared, const RecordVersion& version);
  static Status Remove(Shared& shared, const std::string& bundle);

  std::shared_ptr<Shared> shared_;
};

}  // namespace gantry::task
