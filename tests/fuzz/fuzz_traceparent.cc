// SPDX-License-Identifier: Apache-2.0
//
// What a caller says of his trace: the first line is `traceparent`, the rest `tracestate`.
#include <algorithm>
#include <optional>

#include "core/trace/span_context.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const std::string_view parent = input.substr(0, input.find('\n'));
  input.remove_prefix(std::min(parent.size() + 1, input.size()));
  const std::optional<trace::SpanContext> context = trace::ParseTraceparent(parent, input);
  if (!context) {
    return;
  }
  Require(context->trace != trace::TraceId{}, "a trace has an id");
  Require(context->span != trace::SpanId{}, "a span has an id");
  Require(parent.size() <= trace::kMaxTraceparent, "it is not too long");
  Require(context->state.size() <= trace::kMaxTracestate, "nor is its state");
  Require(context->state.empty() || context->state == input, "its state is passed on as it is");
}

}  // namespace gantry::fuzz
