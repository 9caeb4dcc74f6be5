// SPDX-License-Identifier: Apache-2.0
#include "core/async/idle_trim.h"

#include <utility>

namespace gantry::async {

void IdleTrim::Touch() {
  touched_ = true;
  if (!timer_) {
    timer_ = loop_.After(options_.quiet, [this] { Check(); });
  }
}

void IdleTrim::Tick() {
  if (!timer_) {
    timer_ = loop_.After(Duration::zero(), [this] { Check(); });
  }
}

void IdleTrim::Check() {
  timer_ = {};
  const bool busy = std::exchange(touched_, false);
  if (busy) {
    timer_ = loop_.After(options_.quiet, [this] { Check(); });
  }
  if (!busy || ++busy_ >= options_.most_busy) {
    busy_ = 0;
    options_.release();
  }
}

}  // namespace gantry::async
