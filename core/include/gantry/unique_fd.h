// SPDX-License-Identifier: Apache-2.0
//
// The one owner of a descriptor.
#pragma once

#include <utility>

#include <gantry/error.h>

namespace gantry {

/// Owns a file descriptor and closes it. Thread: any, one at a time.
class UniqueFd {
 public:
  UniqueFd() = default;

  /// Owner: takes `fd`; a negative number is "none".
  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }

  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  ~UniqueFd() { reset(); }

  int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

  /// Gives the descriptor up without closing it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  /// Closes what is held and takes `fd`. errno is left as it was.
  void reset(int fd = -1);
  /// A second descriptor of the same open file, CLOEXEC and above 2.
  Result<UniqueFd> Duplicate() const;

 private:
  int fd_ = -1;
};

}  // namespace gantry
