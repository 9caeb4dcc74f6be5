// SPDX-License-Identifier: Apache-2.0
#include "core/task/record_file.h"

#include <utility>

namespace gantry::task {

Status RecordFile::Write(Shared& shared, const RecordVersion& version) {
  const MutexLock lock(shared.mutex);
  if (shared.removed || version.number <= shared.written) {
    return {};
  }
  if (std::exchange(shared.inherited, false)) {
    store::RemoveUnfinished(version.record.bundle);
  }
  GANTRY_CHECK_OK(store::Write(version.record, version.most));
  shared.written = version.number;
  return {};
}

Status RecordFile::Remove(Shared& shared, const std::string& bundle) {
  const MutexLock lock(shared.mutex);
  shared.removed = true;
  if (std::exchange(shared.inherited, false)) {
    store::RemoveUnfinished(bundle);
  }
  return store::Remove(bundle);
}

}  // namespace gantry::task
