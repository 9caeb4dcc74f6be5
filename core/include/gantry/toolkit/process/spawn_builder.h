// SPDX-License-Identifier: Apache-2.0
//
// A `SpawnRequest` for a program that is told on its command line which descriptors it has.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// Its descriptors, numbered from 3 on in the order in which they come, and its arguments.
/// Thread: one.
class SpawnBuilder {
 public:
  /// An argument as it is.
  void Add(std::string argument) { arguments_.push_back(std::move(argument)); }

  void Add(const std::vector<std::string>& arguments) {
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
  }

  /// A descriptor; gives its number.
  int Pass(UniqueFd fd);
  /// `--NAME=NUMBER` with a descriptor.
  void AddFd(std::string_view flag, UniqueFd fd);

  /// To be done last. `name` is what `ps` shows; `program` is executed.
  /// Errors: as `UniqueFd::Duplicate`.
  Result<SpawnRequest> Finish(std::string name, const UniqueFd& program);

 private:
  static constexpr int kFirst = 3;
  std::vector<std::string> arguments_;
  std::vector<std::pair<UniqueFd, int>> fds_;
};

}  // namespace gantry
