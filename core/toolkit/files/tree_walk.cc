// SPDX-License-Identifier: Apache-2.0
//
// The way down is kept as names, and with each the identity of the directory that it is in. On
// the way up ".." must be that one: a directory that is moved meanwhile cannot lead the walk
// out of the tree.
#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/files/tree_walk.h>
#include <gantry/unique_fd.h>

#include "core/toolkit/files/directory.h"

namespace gantry {
namespace {

/// A directory between the tree's root and the current one.
struct WalkLevel {
  std::string name;
  /// Of the directory that `name` is in; none for the root.
  DirectoryIdentity parent;
  /// Directories that are still to be visited.
  std::vector<std::string> below;
};

/// Gone, or no directory of this tree (any more).
bool IsNoneOfIt(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == ENODEV || sys_errno == ENOTDIR || sys_errno == ELOOP ||
         sys_errno == EXDEV;
}

Result<std::vector<std::string>> DirectoriesIn(int dir, const std::string& name) {
  std::vector<std::string> names;
  const int reading = openat(dir, ".", kDirectoryFlags);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(reading < 0 ? nullptr : fdopendir(reading),
                                                    closedir);
  if (!entries) {
    // It was removed after it had been opened.
    return IsNoneOfIt(errno) ? Result<std::vector<std::string>>(std::move(names))
                             : FailErrno(errno, "read '{}'", name);
  }
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view found(entry->d_name);
    if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && found != "." && found != "..") {
      names.emplace_back(found);
    }
  }
  return names;
}

class TreeWalker {
 public:
  TreeWalker(const std::string& root, const TreeVisitor& visitor)
      : root_(root), visitor_(visitor) {}

  Status Run() {
    UniqueFd root(open(root_.c_str(), kDirectoryFlags));
    if (!root) {
      return FailErrno(errno, "open '{}'", root_);
    }
    GANTRY_CHECK_OK(Enter(std::move(root), root_, {}));
    while (!levels_.empty()) {
      GANTRY_CHECK_OK(levels_.back().below.empty() ? Leave() : EnterNext());
    }
    return {};
  }

 private:
  Status Enter(UniqueFd dir, std::string name, DirectoryIdentity parent) {
    if (visitor_.enter) {
      GANTRY_CHECK_OK(visitor_.enter(dir.get()));
    }
    GANTRY_TRY(std::vector<std::string> below, DirectoriesIn(dir.get(), name));
    current_ = std::move(dir);
    levels_.push_back({.name = std::move(name), .parent = parent, .below = std::move(below)});
    return {};
  }

  Status EnterNext() {
    std::string name = std::move(levels_.back().below.back());
    levels_.back().below.pop_back();
    UniqueFd child(OpenWithoutMount(current_.get(), name.c_str()));
    if (!child) {
      return IsNoneOfIt(errno) ? Status() : FailErrno(errno, "open '{}' below '{}'", name, root_);
    }
    GANTRY_TRY(const DirectoryIdentity parent, IdentityOf(current_.get(), name));
    return Enter(std::move(child), std::move(name), parent);
  }

  Status Leave() {
    const WalkLevel level = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
      return visitor_.leave ? visitor_.leave(AT_FDCWD, root_) : Status();
    }
    UniqueFd parent(openat(current_.get(), "..", kDirectoryFlags));
    if (!parent) {
      return FailErrno(errno, "leave '{}' below '{}'", level.name, root_);
    }
    GANTRY_TRY(const DirectoryIdentity identity, IdentityOf(parent.get(), level.name));
    if (identity != level.parent) {
      return Fail(Code::kAborted, "leave '{}' below '{}': it was moved meanwhile", level.name,
                  root_);
    }
    current_ = std::move(parent);
    return visitor_.leave ? visitor_.leave(current_.get(), level.name) : Status();
  }

  const std::string& root_;
  const TreeVisitor& visitor_;
  UniqueFd current_;
  std::vector<WalkLevel> levels_;
};

}  // namespace

Status WalkTree(const std::string& root, const TreeVisitor& visitor) {
  return TreeWalker(root, visitor).Run();
}

}  // namespace gantry
