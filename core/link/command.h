// SPDX-License-Identifier: Apache-2.0
//
// A program with all that is said to it, kept for later.
#pragma once

#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::link {

struct Command {
  /// The first is the program's absolute path.
  std::vector<std::string> argv;
  /// "NAME=value"; the whole environment.
  std::vector<std::string> env;
  /// Not there when it is run: "/".
  std::string cwd;

  bool operator==(const Command&) const = default;

  void Each(this auto& self, auto&& field) {
    field(1, self.argv);
    field(2, self.env);
    field(3, self.cwd);
  }
};

}  // namespace gantry::link
