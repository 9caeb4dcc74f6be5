// SPDX-License-Identifier: Apache-2.0
#include "core/backend/call_deadline.h"

#include <algorithm>
#include <utility>

namespace gantry::backend {
namespace {

thread_local CallDeadline::Clock::time_point current = CallDeadline::kNone;

}  // namespace

CallDeadline::CallDeadline(Clock::time_point deadline)
    : before_(std::exchange(current, deadline)) {}

CallDeadline::~CallDeadline() { current = before_; }

std::chrono::milliseconds CallDeadline::Left() {
  using std::chrono::milliseconds;
  if (current == kNone) {
    return milliseconds::max();
  }
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(current - Clock::now()));
}

}  // namespace gantry::backend
