// SPDX-License-Identifier: Apache-2.0
//
// How gantryctl writes: tables for people, JSON for programs.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ctl {

/// Columns as wide as their widest cell, two blanks between, no blanks at a
/// line's end. Control characters in cells become `?`; an empty cell is `-`.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { Add(std::move(head)); }

  /// As many cells as the head has.
  void Add(std::vector<std::string> cells);

  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Builds indented JSON in the order of the calls, which must nest well.
class JsonWriter {
 public:
  JsonWriter& Object() { return Open('{'); }

  JsonWriter& Array() { return Open('['); }

  /// Ends the innermost object or array.
  JsonWriter& End();
  JsonWriter& Key(std::string_view name);
  JsonWriter& Value(std::string_view text);

  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }

  JsonWriter& Value(bool value) { return Raw(value ? "true" : "false"); }

  template <std::integral T>
  JsonWriter& Value(T value) {
    return Raw(std::to_string(value));
  }

  /// JSON as it is.
  JsonWriter& Raw(std::string_view json);

  template <class T>
  JsonWriter& Member(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }

  /// The document, with a newline at its end.
  std::string Take();

 private:
  JsonWriter& Open(char bracket);
  void NextItem();

  std::string out_;
  /// The closing brackets still to come.
  std::string open_;
  bool first_ = true;
  bool after_key_ = false;
};

/// `12.3 MiB`; empty for 0.
std::string BytesText(uint64_t bytes);
/// `5s`, `12m`, `3h`, `8d`: how long before `now_ns`; empty for 0.
std::string AgeText(int64_t then_ns, int64_t now_ns);
/// RFC 3339 in UTC; empty for 0.
std::string TimeText(int64_t ns);
/// Since 1970.
int64_t NowNs();
/// `12.345s`: CPU time; empty for 0.
std::string CpuText(uint64_t ns);
/// The number; empty for 0.
std::string NumberText(uint64_t number);

}  // namespace gantry::ctl
