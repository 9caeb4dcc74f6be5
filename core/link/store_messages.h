// SPDX-License-Identifier: Apache-2.0
//
// The store of descriptors that must outlive an engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/message_type.h"

namespace gantry::link {

/// What the keeper keeps of a descriptor that it is given.
enum class StoreAs : uint32_t {
  /// The descriptor itself.
  kItself = 0,
  /// An end of the fifo that it names (O_PATH), which the keeper opens: so the
  /// fifo's other side never sees it open for a moment only, whenever the engine
  /// is killed. A write end also where nobody reads yet.
  kReadEnd = 1,
  kWriteEnd = 2,
};

/// engine -> keeper: keep the message's descriptors, in place of what was there
/// under their names. After an error some of them may be kept. Answer: PutDone.
struct Put {
  static constexpr Type kType = Type::kPut;

  uint64_t tag = 0;
  /// One for each descriptor, of 1 to 256 bytes.
  std::vector<std::string> names;
  /// StoreAs, one for each descriptor; those that are missing: kItself.
  std::vector<uint32_t> as;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.names);
    field(3, self.as);
  }
};

/// keeper -> engine: kept, or why not (kResourceExhausted when the store is full).
struct PutDone {
  static constexpr Type kType = Type::kPutDone;

  uint64_t tag = 0;
  int32_t code = 0;
  std::string message;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.code);
    field(3, self.message);
  }
};

/// engine -> keeper: a second descriptor of what is stored. Answer: Taken.
struct Take {
  static constexpr Type kType = Type::kTake;

  uint64_t tag = 0;
  std::string name;
  /// More of them with the same answer. A keeper of before knows only the first.
  std::vector<std::string> others;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.name);
    field(3, self.others);
  }
};

/// keeper -> engine: with the descriptors, which stay stored; or why there is none of `name`.
struct Taken {
  static constexpr Type kType = Type::kTaken;

  uint64_t tag = 0;
  int32_t code = 0;
  std::string message;
  /// Of each descriptor. Who is not named was not stored, or there was no room for it.
  std::vector<std::string> names;

  void Each(this auto& self, auto&& field) {
    field(1, self.tag);
    field(2, self.code);
    field(3, self.message);
    field(4, self.names);
  }
};

/// engine -> keeper: close what is stored under `name`. No answer; again: nothing.
struct Drop {
  static constexpr Type kType = Type::kDrop;

  std::string name;

  void Each(this auto& self, auto&& field) { field(1, self.name); }
};

}  // namespace gantry::link
