// SPDX-License-Identifier: Apache-2.0
//
// Where a JSON object in a stream of bytes ends, for protocols without frames: a message is one
// object, and its end is where its last brace closes.
#pragma once

#include <cstddef>
#include <string_view>

namespace gantry {

/// Told of the bytes in their order, in any portions. Whether the object is well-formed is
/// its parser's business.
class JsonEnd {
 public:
  enum class State {
    /// Only white space so far.
    kBefore,
    kInside,
    kEnded,
    /// It does not begin with a brace.
    kNoObject,
  };

  /// Takes bytes up to the object's end and says how many it took.
  size_t Feed(std::string_view bytes);

  State state() const { return state_; }

 private:
  void Take(char c);

  State state_ = State::kBefore;
  size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace gantry
