// SPDX-License-Identifier: Apache-2.0
//
// Metrics taken apart, for the tests: a place is field in field in field.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/container.h>
#include <gantry/protowire.h>

namespace gantry::gvisor {

/// The message there.
inline std::string MessageAt(const AnyValue& any, const std::vector<uint32_t>& place) {
  std::string message = any.value;
  for (const uint32_t field : place) {
    ProtoReader in(message);
    bool found = false;
    while (!found && in.Next()) {
      found = in.field() == field && in.is_bytes();
    }
    EXPECT_TRUE(found) << field;
    message = found ? in.text() : std::string();
  }
  return message;
}

inline std::set<uint32_t> FieldsAt(const AnyValue& any, const std::vector<uint32_t>& place) {
  const std::string message = MessageAt(any, place);
  std::set<uint32_t> fields;
  ProtoReader in(message);
  while (in.Next()) {
    fields.insert(in.field());
  }
  EXPECT_TRUE(in.ok());
  return fields;
}

/// 0 where there is none.
inline uint64_t NumberAt(const AnyValue& any, const std::vector<uint32_t>& place) {
  const std::string message = MessageAt(any, {place.begin(), place.end() - 1});
  ProtoReader in(message);
  while (in.Next()) {
    if (in.field() == place.back()) {
      return in.number();
    }
  }
  return 0;
}

}  // namespace gantry::gvisor
