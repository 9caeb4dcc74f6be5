// SPDX-License-Identifier: Apache-2.0
//
// Counts the executions of programs by some processes and all that descend
// from them, told by the kernel's process connector: nothing is traced, so
// nothing is slowed down or changes its parent.
// Source: kernel, include/uapi/linux/cn_proc.h.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::bench {

/// Thread: one; it runs one of its own between Start and Finish.
class ExecutionCounter {
 public:
  explicit ExecutionCounter(const std::vector<pid_t>& roots)
      : family_(roots.begin(), roots.end()) {}

  ExecutionCounter(const ExecutionCounter&) = delete;
  ExecutionCounter& operator=(const ExecutionCounter&) = delete;
  ~ExecutionCounter();

  /// Errors: kPermissionDenied without CAP_NET_ADMIN, or in a container.
  Status Start();
  /// What was executed since and in the half second to come: the names of the
  /// programs, "?" for one that had ended before it could be looked at.
  /// Errors: kResourceExhausted when the kernel had more to tell than we read.
  Result<std::vector<std::string>> Finish();

 private:
  void Listen();
  void Take(std::string_view message);

  UniqueFd socket_;
  UniqueFd stop_;
  std::thread thread_;
  // The thread's until it is joined.
  std::set<pid_t> family_;
  std::vector<std::string> names_;
  bool lost_ = false;
};

/// A note for the report: `what: name, name`.
std::string Named(const std::string& what, const std::vector<std::string>& names);

}  // namespace gantry::bench
