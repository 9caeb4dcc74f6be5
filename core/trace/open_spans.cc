// SPDX-License-Identifier: Apache-2.0
#include "core/trace/open_spans.h"

#include <algorithm>
#include <ranges>

namespace gantry::trace {

void OpenSpans::Add(OpenSpan& span) { spans_[{span.span_.ns, span.span_.id}].push_back(&span); }

void OpenSpans::Remove(OpenSpan& span) {
  const auto found = spans_.find({span.span_.ns, span.span_.id});
  if (found == spans_.end()) {
    return;
  }
  std::erase(found->second, &span);
  if (found->second.empty()) {
    spans_.erase(found);
  }
}

const OpenSpan* OpenSpans::Find(const Subject& subject) const {
  const auto found = spans_.find({std::string(subject.ns), std::string(subject.id)});
  if (found == spans_.end()) {
    return nullptr;
  }
  for (const OpenSpan* const span : std::views::reverse(found->second)) {
    if (span->span_.exec == subject.exec) {
      return span;
    }
  }
  return found->second.back();
}

size_t OpenSpans::size() const {
  size_t sum = 0;
  for (const auto& [key, spans] : spans_) {
    sum += spans.size();
  }
  return sum;
}

}  // namespace gantry::trace
