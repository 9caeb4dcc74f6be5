// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that are kept for what has to succeed where there are no more: a signal that
// ends a process is what gives some back.
#pragma once

#include <array>
#include <type_traits>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

namespace gantry::os {

/// Thread: any. Blocks: never.
class SpareFds {
 public:
  SpareFds() { Fill(); }

  SpareFds(const SpareFds&) = delete;
  SpareFds& operator=(const SpareFds&) = delete;
  ~SpareFds() = default;

  /// `function()`; where it fails with RESOURCE_EXHAUSTED, once more with three descriptors
  /// that are free for it. (Another thread may take them first.)
  template <class F>
  std::invoke_result_t<F&> Run(F function) {
    std::invoke_result_t<F&> done = function();
    if (done || done.error().code != Code::kResourceExhausted) {
      return done;
    }
    const MutexLock lock(mutex_);
    fds_ = {};
    done = function();
    Fill();
    return done;
  }

 private:
  /// As far as it can.
  void Fill() GANTRY_REQUIRES(mutex_);

  Mutex mutex_;
  std::array<UniqueFd, 3> fds_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::os
