// SPDX-License-Identifier: Apache-2.0
//
// The name of a point: what is done, and to what. The same step of two containers has
// the same name.
#pragma once

#include <string_view>

#include "tests/fault/points/control.h"

namespace gantry::fault {

/// Thread: any. Allocates nothing: it is made in the middle of system calls.
class Name {
 public:
  /// `write`, `gantry.record`. What is too long is cut.
  Name(std::string_view verb, std::string_view object);

  std::string_view text() const { return {bytes_.data(), size_}; }

  const NameBytes& bytes() const { return bytes_; }

 private:
  void Append(std::string_view part);

  NameBytes bytes_{};
  size_t size_ = 0;
};

/// A path's last part where it is one and the same for all containers; `*` where it has
/// a digit in it, as ids and pids have; `cgroup` for one. Of a file that is written
/// before it is renamed: the name that it will have, with `.tmp`.
std::string_view ObjectOf(std::string_view path);

}  // namespace gantry::fault
