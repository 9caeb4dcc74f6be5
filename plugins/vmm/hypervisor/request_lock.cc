// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/request_lock.h"

namespace gantry::vmm {

Result<RequestLock::Held> RequestLock::Take(std::string_view what, Deadline deadline) {
  MutexLock lock(mutex_);
  while (taken_) {
    if (ended_.wait_until(lock.native(), deadline) == std::cv_status::timeout && taken_) {
      return Fail(Code::kDeadlineExceeded, "{}: another request to this VMM is under way", what);
    }
  }
  taken_ = true;
  return Held(*this);
}

void RequestLock::End() {
  const MutexLock lock(mutex_);
  taken_ = false;
  ended_.notify_one();
}

}  // namespace gantry::vmm
