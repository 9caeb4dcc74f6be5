// SPDX-License-Identifier: Apache-2.0
//
// What gantry executes, with arguments: strace of keeper and engine and of what they fork, up
// to where that becomes another program. What those do is not followed: systrap's stubs belong
// to the sentry, which is a tracer itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/harness/node.h"

namespace gantry::e2e {

struct Execution {
  std::string program;             ///< The file, where strace could name it.
  std::vector<std::string> words;  ///< Its arguments, the name it is called by first.

  std::string Text() const;
};

/// Thread: the test's. While there is one, all that gantry does takes longer.
class ExecutionTrace {
 public:
  /// Traces from here on. Fails the test where it cannot.
  explicit ExecutionTrace(const Node& node);

  /// All since. Again: none.
  std::vector<Execution> Finish();

 private:
  std::string path_;
  Program program_;
};

}  // namespace gantry::e2e
