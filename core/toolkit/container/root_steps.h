// SPDX-License-Identifier: Apache-2.0
//
// The steps by which a container's root is made, as the maker of its process goes through them.
#pragma once

#include <gantry/error.h>

namespace gantry::container {

/// Thread: that of the child that calls it, which has no other.
class RootSteps {
 public:
  RootSteps() = default;
  RootSteps(const RootSteps&) = delete;
  RootSteps& operator=(const RootSteps&) = delete;
  virtual ~RootSteps() = default;

  /// With the maker's rights and view of the host's files.
  virtual Status Open() = 0;
  /// In the container's namespaces.
  virtual Status Mount() = 0;
  virtual Status Enter() = 0;
  /// Where there is a terminal; it is borrowed.
  virtual Status AttachConsole(int terminal) = 0;
  virtual Status Seal() = 0;
};

}  // namespace gantry::container
