// SPDX-License-Identifier: Apache-2.0
#include "core/log/rotation.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include <gantry/unique_fd.h>

namespace gantry::log {
namespace {

/// So often is the size checked while the file grows to its bound.
constexpr int64_t kChecks = 256;

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

void Rotation::Begin(std::string path, int64_t max_bytes) {
  path_ = std::move(path);
  max_bytes_ = max_bytes;
  struct stat ours{};
  struct stat named{};
  if (fstat(STDERR_FILENO, &ours) != 0 || !S_ISREG(ours.st_mode) ||
      stat(path_.c_str(), &named) != 0 || !IsSame(ours, named)) {
    path_.clear();
  }
}

void Rotation::Wrote(size_t bytes) {
  if (path_.empty()) {
    return;
  }
  written_ += bytes;
  if (static_cast<int64_t>(written_) >= max_bytes_ / kChecks) {
    written_ = 0;
    RotateIfLarge();
  }
}

void Rotation::RotateIfLarge() {
  struct stat ours{};
  struct stat named{};
  if (fstat(STDERR_FILENO, &ours) != 0) {
    return;
  }
  const bool there = stat(path_.c_str(), &named) == 0;
  if (there && IsSame(ours, named)) {
    // Else another engine beside this one has done it.
    if (ours.st_size <= max_bytes_ || rename(path_.c_str(), (path_ + ".1").c_str()) != 0) {
      return;
    }
  }
  const UniqueFd file(
      open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return;
  }
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat old{};
    if (fstat(standard, &old) == 0 && IsSame(old, ours)) {
      dup3(file.get(), standard, 0);
    }
  }
}

}  // namespace gantry::log
