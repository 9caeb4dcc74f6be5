// SPDX-License-Identifier: Apache-2.0
#include "core/os/idle_trim.h"

#include <chrono>
#include <utility>

#include "core/os/memory.h"

namespace gantry::os {
namespace {

constexpr std::chrono::seconds kQuiet(1);

}  // namespace

void IdleTrim::Touch() {
  touched_ = true;
  if (!timer_) {
    timer_ = loop_.After(kQuiet, [this] { Look(); });
  }
}

void IdleTrim::Look() {
  timer_ = {};
  if (std::exchange(touched_, false)) {
    timer_ = loop_.After(kQuiet, [this] { Look(); });
    return;
  }
  ReleaseMemory();
}

}  // namespace gantry::os
