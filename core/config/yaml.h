// SPDX-License-Identifier: Apache-2.0
//
// A value of a YAML file with its place in it, read with checks. Only for the
// files of this folder: yaml-cpp's exceptions pass through these functions and
// end in `Parse` of config.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <yaml-cpp/yaml.h>

#include <gantry/error.h>

#include "core/config/config.h"

namespace gantry::config {

class Yaml {
 public:
  using Reader = std::function<Status(const Yaml& value)>;
  using Member = std::pair<std::string_view, Reader>;

  /// The root of `file`.
  Yaml(const YAML::Node& node, std::string file) : node_(node), file_(std::move(file)) {}

  /// A map with these keys and no others, each at most once. Nothing after the
  /// colon is an empty map.
  Status ReadMap(std::initializer_list<Member> members) const;
  /// A map with any names for keys, `most` of them.
  Status EachMember(size_t most,
                    const std::function<Status(const std::string&, const Yaml&)>& read) const;

  Status ReadText(std::string& out) const;
  /// A whole number from `least` to `most`.
  Status ReadNumber(uint64_t& out, uint64_t least, uint64_t most) const;
  /// A part of a whole, from 0 to 1: digits with at most one point.
  Status ReadPart(double& out) const;
  /// A number with a unit: B, KiB, MiB, GiB; bytes without one.
  Status ReadBytes(size_t& out, size_t least, size_t most) const;
  /// A number with a unit: ms, s, m, h.
  Status ReadDuration(Millis& out, Millis least, Millis most) const;
  /// A map that is passed on as it is.
  Status ReadOptions(BackendOptions& out) const;

  /// Of its key.
  int line() const { return mark_.line + 1; }

  /// `read configuration 'FILE:LINE:COLUMN': KEY: CAUSE`.
  std::unexpected<Error> Wrong(std::string_view cause) const;

 private:
  Yaml(const YAML::Node& node, std::string file, std::string key, YAML::Mark mark)
      : node_(node), file_(std::move(file)), key_(std::move(key)), mark_(mark) {}

  Result<std::string> Scalar(std::string_view expected) const;
  Result<std::string> KeyOf(const YAML::Node& key) const;

  YAML::Node node_;
  std::string file_;
  /// `limits.worker_threads`; empty for the root.
  std::string key_;
  /// The place of the key, for values that have none of their own.
  YAML::Mark mark_ = YAML::Mark::null_mark();
};

}  // namespace gantry::config
