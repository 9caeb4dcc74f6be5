// SPDX-License-Identifier: Apache-2.0
//
// A tree that is deeper than a path can be long, and a stack as small as a worker's.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Beyond PATH_MAX with names of one letter.
constexpr int kDeepLevels = 2500;

/// A directory in memory, where some thousand directories are made fast; removed with all in it.
class ScratchTree {
 public:
  ScratchTree() {
    for (std::string name : {"/dev/shm/gantry-tree-XXXXXX", "/tmp/gantry-tree-XXXXXX"}) {
      if (path_.empty() && mkdtemp(name.data()) != nullptr) {
        path_ = name;
      }
    }
  }

  ~ScratchTree() { EXPECT_TRUE(RemoveTree(path_)); }

  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;

  const std::string& path() const { return path_; }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Makes directories in `root`, one in the other. `put` is called with each, the deepest last.
inline void MakeDeepTree(const std::string& root,
                         const std::function<void(int dir, bool deepest)>& put = {}) {
  UniqueFd dir(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < kDeepLevels; ++level) {
    ASSERT_EQ(mkdirat(dir.get(), "d", 0755), 0) << level;
    dir = UniqueFd(openat(dir.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(dir) << level;
    if (put) {
      put(dir.get(), level == kDeepLevels - 1);
    }
  }
}

inline void PutFile(int dir, const char* name, const std::string& text) {
  const UniqueFd file(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// Runs it on a thread with a stack of 256 KiB.
inline void OnSmallStack(std::function<void()> run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* task) -> void* {
                  (*static_cast<std::function<void()>*>(task))();
                  return nullptr;
                },
                &run),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace gantry
