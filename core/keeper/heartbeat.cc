// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/heartbeat.h"

#include <utility>

namespace gantry::keeper {

Heartbeat::Heartbeat(async::Loop& loop, Events events) : loop_(loop), events_(std::move(events)) {}

Heartbeat::~Heartbeat() { loop_.Cancel(timer_); }

void Heartbeat::Begin(std::chrono::milliseconds limit) {
  End();
  limit_ = limit;
  if (limit_.count() > 0) {
    Ask();
  }
}

void Heartbeat::End() {
  loop_.Cancel(timer_);
  answered_ = true;
}

void Heartbeat::OnPong(uint64_t number) { answered_ = answered_ || number == number_; }

void Heartbeat::Ask() {
  answered_ = false;
  asked_at_ = looked_at_ = loop_.Now();
  timer_ = loop_.After(limit_ / 2, [this] { Check(); });
  events_.ping(++number_);
}

void Heartbeat::Check() {
  if (answered_) {
    Ask();
    return;
  }
  const async::TimePoint now = loop_.Now();
  // Where this comes late, the keeper did not run either.
  if (now - looked_at_ > limit_) {
    asked_at_ = now;
  }
  looked_at_ = now;
  if (now - asked_at_ < limit_) {
    timer_ = loop_.After(limit_ / 2, [this] { Check(); });
    return;
  }
  events_.silent(std::chrono::duration_cast<std::chrono::milliseconds>(now - asked_at_));
}

}  // namespace gantry::keeper
