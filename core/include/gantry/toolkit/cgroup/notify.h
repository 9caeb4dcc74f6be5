// SPDX-License-Identifier: Apache-2.0
//
// A file of cgroup v2 that tells of its changes (cgroup.events, memory.events).
// On cgroupfs the kernel reports a change as a priority event on the open file
// itself, which costs no inotify instance (a node has 128 of those per user by
// default). Elsewhere, as with a tree of plain files, inotify is used.
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "[un]populated
// notification"; kernfs_generic_poll().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::cgroup {

/// Thread: one at a time.
class CgroupNotify {
 public:
  /// Errors: kNotFound when the file is absent.
  static Result<CgroupNotify> Open(const std::string& path);

  /// What to poll, and for which events. Ready: `Read` again.
  int poll_fd() const { return inotify_ ? inotify_.get() : file_.get(); }

  uint32_t poll_events() const;

  /// The content now; changes from here on make `poll_fd` ready. An error means
  /// that the cgroup is gone. Blocks: never.
  Result<std::string> Read();

 private:
  CgroupNotify() = default;

  std::string path_;
  UniqueFd file_;
  UniqueFd inotify_;
};

/// Waits until `done` says yes to the content of `path`.
/// Errors: kDeadlineExceeded; kNotFound when the cgroup is or goes away.
Status WaitForCgroupFile(const std::string& path, Deadline deadline,
                         const std::function<bool(std::string_view)>& done);

}  // namespace gantry::cgroup
