// SPDX-License-Identifier: Apache-2.0
//
// A network namespace that is somebody's own, and sockets in it. A socket stays in the
// namespace that it was made in, so that nothing but its making needs a thread there.
// Source: setns(2), namespaces(7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry::net {

/// For setns(2); whose it is is not asked. Errors: kNotFound; kInvalidArgument: it is something
/// else.
Result<UniqueFd> OpenNetns(const std::string& path);

/// One in which nothing is, not even a loopback that is up, the same for all who ask: it costs as
/// much time as five processes that get none. Errors: as unshare(2). Thread: any.
Result<UniqueFd> EmptyNetns();

/// Thread: any.
class Netns {
 public:
  /// Errors: kNotFound; kInvalidArgument: it is something else; kFailedPrecondition: it is the
  /// host's, or this process's own.
  static Result<Netns> Open(const std::string& path);
  /// The one of that inode. Errors: the same; kFailedPrecondition: it is another one.
  static Result<Netns> Reopen(const std::string& path, uint64_t inode);

  /// Sockets as of socket(2), CLOEXEC, made by a thread that ends with that.
  /// Errors: as setns(2) and socket(2).
  Result<std::vector<UniqueFd>> Sockets(int domain, int type, int protocol, size_t count) const;

  /// A file of the node, opened by such a thread: /dev/net/tun, say, which makes its interfaces
  /// where whoever opened it was. `flags`: as of open(2). Errors: as setns(2) and open(2).
  Result<UniqueFd> OpenFile(const std::string& path, int flags) const;

  /// Tells it from all others that there are.
  uint64_t inode() const { return inode_; }

  const UniqueFd& fd() const { return fd_; }

 private:
  Netns(UniqueFd fd, uint64_t inode) : fd_(std::move(fd)), inode_(inode) {}

  UniqueFd fd_;
  uint64_t inode_ = 0;
};

/// `result`; where it is an error, it begins with `<what> '<path>'`.
template <class T>
Result<T> About(std::string_view what, const std::string& path, Result<T> result) {
  if (!result) {
    return std::unexpected(std::move(result).error().Within(Format("{} '{}'", what, path)));
  }
  return result;
}

}  // namespace gantry::net
