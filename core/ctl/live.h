// SPDX-License-Identifier: Apache-2.0
//
// Where commands write that do not end with one answer.
#pragma once

#include <iosfwd>

#include <gantry/error.h>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

struct Output {
  std::ostream& out;
  std::ostream& err;
  /// `out` is a terminal, on which a table can be drawn anew.
  bool terminal = false;
};

}  // namespace gantry::ctl
