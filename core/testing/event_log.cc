// SPDX-License-Identifier: Apache-2.0
#include <gantry/testing/event_log.h>

namespace gantry {

void EventLog::Add(const std::string& word) {
  {
    const MutexLock lock(mutex_);
    words_.push_back(word);
  }
  if (on_word) {
    on_word(word);
  }
}

std::vector<std::string> EventLog::words() const {
  const MutexLock lock(mutex_);
  return words_;
}

}  // namespace gantry
