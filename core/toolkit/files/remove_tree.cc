// SPDX-License-Identifier: Apache-2.0
//
// Removing a tree that a container may have filled, and may be changing still.
//
// The walk keeps two directories open however deep the tree is: the current
// one, and on the way down its child. On the way up it opens ".." and checks
// that this is the directory it came from, so a directory that is moved away
// meanwhile cannot lead it out of the tree. Symbolic links are never followed,
// and a mount is never entered: the kernel itself refuses, by openat2, where
// it can (Linux 5.6), since a bind mount of the same file system cannot be told
// by its device number.

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

#include "core/toolkit/files/directory.h"

namespace gantry {
namespace {

/// A directory between the tree's root and the current one.
struct Level {
  std::string name;
  /// Of the directory that `name` is in.
  DirectoryIdentity parent;
};

class TreeRemover {
 public:
  /// Removes `name` in `dir`.
  Status Remove(int dir, const std::string& name);

 private:
  /// Removes the entry, or enters it where it is a directory that has entries.
  Status RemoveOrEnter(int dir, const std::string& name);
  /// Removes what is in the current directory up to the first directory that
  /// has entries, which is entered. True: the current directory is empty.
  Result<bool> Sweep();
  Status Leave();
  Status Retry(int sys_errno, const std::string& name);

  std::unexpected<Error> Failed(int sys_errno, const std::string& name) const;

  /// The current directory.
  UniqueFd current_;
  std::vector<Level> levels_;
  int retries_ = 0;
};

std::unexpected<Error> TreeRemover::Failed(int sys_errno, const std::string& name) const {
  std::string path;
  // Deep trees have long names; the last parts tell enough.
  constexpr size_t kShown = 8;
  for (size_t i = levels_.size() > kShown ? levels_.size() - kShown : 0; i < levels_.size(); ++i) {
    path += levels_[i].name + '/';
  }
  path += name;
  if (sys_errno == EXDEV || sys_errno == EBUSY) {
    return std::unexpected(Error{Code::kFailedPrecondition,
                                 sys_errno,
                                 Format("remove '{}': something is mounted there", path),
                                 {}});
  }
  return FailErrno(sys_errno, "remove '{}'", path);
}

Status TreeRemover::Remove(int dir, const std::string& name) {
  GANTRY_CHECK_OK(RemoveOrEnter(dir, name));
  while (!levels_.empty()) {
    GANTRY_TRY(const bool empty, Sweep());
    if (!empty) {
      continue;
    }
    if (levels_.size() == 1) {
      if (unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
        return {};
      }
      GANTRY_CHECK_OK(Retry(errno, name));
      continue;
    }
    GANTRY_CHECK_OK(Leave());
  }
  return {};
}

/// An empty directory that is not empty when it is removed is swept again.
Status TreeRemover::Retry(int sys_errno, const std::string& name) {
  constexpr int kMaxRetries = 1000;
  if ((sys_errno != ENOTEMPTY && sys_errno != EEXIST) || ++retries_ > kMaxRetries) {
    return Failed(sys_errno, name);
  }
  return {};
}

Status TreeRemover::RemoveOrEnter(int dir, const std::string& name) {
  // The kernel says EISDIR for a directory on most file systems, EPERM on some.
  if (unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) {
    return {};
  }
  const int failed = errno;
  if (failed != EISDIR && failed != EPERM) {
    return Failed(failed, name);
  }
  if (unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno == ENOTDIR) {
    return Failed(failed, name);
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    return Failed(errno, name);
  }
  UniqueFd child(OpenWithoutMount(dir, name.c_str()));
  if (!child) {
    return errno == ENOENT ? Status() : Failed(errno, name);
  }
  GANTRY_TRY(const DirectoryIdentity parent, IdentityOf(dir, name));
  current_ = std::move(child);
  levels_.push_back({.name = name, .parent = parent});
  return {};
}

Result<bool> TreeRemover::Sweep() {
  const int reading = openat(current_.get(), ".", kDirectoryFlags);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(reading < 0 ? nullptr : fdopendir(reading),
                                                    closedir);
  if (!entries) {
    return Failed(errno, ".");
  }
  const size_t depth = levels_.size();
  errno = 0;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    GANTRY_CHECK_OK(RemoveOrEnter(current_.get(), name));
    if (levels_.size() > depth) {
      return false;
    }
    errno = 0;
  }
  if (errno != 0) {
    return Failed(errno, ".");
  }
  return true;
}

Status TreeRemover::Leave() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  UniqueFd parent(openat(current_.get(), "..", kDirectoryFlags));
  if (!parent) {
    return Failed(errno, level.name);
  }
  GANTRY_TRY(const DirectoryIdentity identity, IdentityOf(parent.get(), level.name));
  if (identity != level.parent) {
    return Fail(Code::kAborted, "remove '{}': it was moved meanwhile", level.name);
  }
  current_ = std::move(parent);
  if (unlinkat(current_.get(), level.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
    return {};
  }
  return Retry(errno, level.name);
}

}  // namespace

Status RemoveTreeAt(int dir, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.contains('/')) {
    return Fail(Code::kInvalidArgument, "remove '{}': not the name of an entry", name);
  }
  return TreeRemover().Remove(dir, name);
}

Status RemoveTree(const std::string& path) {
  std::string entry = path;
  while (entry.ends_with('/')) {
    entry.pop_back();
  }
  const size_t slash = entry.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : entry.substr(0, slash + 1);
  const UniqueFd dir(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) {
    return errno == ENOENT ? Status() : FailErrno(errno, "open '{}'", parent);
  }
  return RemoveTreeAt(dir.get(), entry.substr(slash + 1));
}

}  // namespace gantry
