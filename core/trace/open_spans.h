// SPDX-License-Identifier: Apache-2.0
//
// Which steps are under way for a container, so that what happens in them finds its parent. It has
// as many entries as there are calls and ends of processes under way, which have limits of their
// own.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/spans.h"

namespace gantry::trace {

/// Thread: loop.
class OpenSpans {
 public:
  OpenSpans() = default;
  OpenSpans(const OpenSpans&) = delete;
  OpenSpans& operator=(const OpenSpans&) = delete;
  ~OpenSpans() = default;

  /// Owner: `span` is borrowed until `Remove`.
  void Add(OpenSpan& span);
  void Remove(OpenSpan& span);
  /// The last one of that exec, or else of its container. Null: none.
  const OpenSpan* Find(const Subject& subject) const;

  size_t size() const;

 private:
  /// Namespace and id.
  using Key = std::pair<std::string, std::string>;

  std::map<Key, std::vector<OpenSpan*>> spans_;
};

}  // namespace gantry::trace
