// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gantry/toolkit/sync/mutex.h>

namespace gantry {

/// What a backend has told the core of a container and its processes, a word each, in its order:
/// `bound`, `exited 3` (with the status), `out of memory`. Thread: any.
class EventLog {
 public:
  void Add(const std::string& word);
  std::vector<std::string> words() const;

  /// Called with each word when `words` has it, by the thread that adds it. To be set before there
  /// is another thread.
  std::function<void(const std::string& word)> on_word;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> words_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry
