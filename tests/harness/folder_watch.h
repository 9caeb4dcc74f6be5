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

  /// Names that came or went since the last time this was asked.
  int Changes() {
    alignas(inotify_event) std::array<char, 4096> events{};
    int changes = 0;
    ssize_t bytes = 0;
    while ((bytes = read(inotify_.get(), events.data(), events.size())) > 0) {
      const char* const end = events.data() + bytes;
      for (const char* at = events.data(); at < end; ++changes) {
        at += sizeof(inotify_event) + reinterpret_cast<const inotify_event*>(at)->len;
      }
    }
    return changes;
  }

 private:
  UniqueFd inotify_{inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
};

}  // namespace gantry::e2e
