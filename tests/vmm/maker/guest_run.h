// SPDX-License-Identifier: Apache-2.0
//
// A GoogleTest program of the host's, run as root in a guest of its own
// (tests/vmm/guests/programs.cc).
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::vmm {

struct GuestRun {
  /// All that the program has written.
  std::string output;
  /// `exit N`, `signal N`; something else where the guest did not come so far.
  std::string end;
  /// Of GoogleTest's closing line; 0: it has none.
  size_t tests = 0;
  size_t passed = 0;
  /// Each as `NAME: REASON`.
  std::vector<std::string> skipped;
  std::vector<std::string> failed;
  /// In which the program ended.
  std::string unended;
};

/// What a program's output says.
GuestRun ReadRun(std::string output);

/// With `files` and what they need in the root, beside `program`. Errors: the guest's, with its
/// console's end. Blocks: until the program has ended.
Result<GuestRun> RunInGuest(const std::string& program, const std::vector<std::string>& files,
                            const std::string& filter);

/// What of the output is of this test.
std::string OutputOf(const GuestRun& run, const std::string& test);

}  // namespace gantry::vmm
