// SPDX-License-Identifier: Apache-2.0
//
// What the misbehaving backend does wrong, and in which call: the options of its
// handler.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::misbehave {

struct Mischief {
  /// "block", "throw", "throw-int", "garbage", "late", "forget"; "watch": blocks, and so do its
  /// watches.
  std::string mode;
  /// The call, "CreateSandbox" for example.
  std::string in;
  /// A fifo: calls that block, and late ones, go on when it is opened for writing.
  std::string gate;
  /// A file that is made when everything late has been called.
  std::string done;

  bool Is(std::string_view a_mode, std::string_view call) const {
    return mode == a_mode && in == call;
  }

  /// Blocks or throws where that is what it does in `call`.
  void Enter(std::string_view call) const;
  /// Waits for the test.
  void AwaitGate() const;
};

/// `options_json` of a sandbox.
Mischief ReadMischief(const std::string& options_json);

/// Bytes that are no UTF-8.
std::string NoText();

}  // namespace gantry::misbehave
