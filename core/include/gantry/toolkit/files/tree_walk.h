// SPDX-License-Identifier: Apache-2.0
//
// Going through a tree of directories that a container may have made, and may be
// changing still: without recursion, two descriptors at a time however deep it is.
#pragma once

#include <functional>
#include <string>

#include <gantry/error.h>

namespace gantry {

/// What is done at each directory of the tree, its root included. An error ends the walk and
/// is its result. What is not set is not done.
struct TreeVisitor {
  /// Before what is in it; `dir` is the directory, open for reading and for the time of the
  /// call.
  std::function<Status(int dir)> enter;
  /// After what is in it, and only where it was still there: it is `name` in `parent`, to be
  /// removed by `unlinkat`. For the root: its path, and AT_FDCWD.
  std::function<Status(int parent, const std::string& name)> leave;
};

/// Visits `root` and every directory below. Links are not followed, and what is mounted below
/// `root` is left out. What comes or goes meanwhile may be visited or not.
///
/// Errors: kNotFound where `root` is absent; kAborted where a directory was moved away under
/// the walk; those of the visitor. Blocks: as the file system and the visitor do. Thread: any.
Status WalkTree(const std::string& root, const TreeVisitor& visitor);

}  // namespace gantry
