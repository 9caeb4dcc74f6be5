// SPDX-License-Identifier: Apache-2.0
//
// Whether anything has come or gone in some folders.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gantry/unique_fd.h>

namespace gantry::e2e {

class FolderWatch {
 public:
  void Add(const std::string& folder) {
    inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_DELETE | IN_MOVE);
  }

  /// Since the last time this was asked.
  bool Changed() {
    std::array<char, 4096> events{};
    bool changed = false;
    while (read(inotify_.get(), events.data(), events.size()) > 0) {
      changed = true;
    }
    return changed;
  }

 private:
  UniqueFd inotify_{inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
};

}  // namespace gantry::e2e
