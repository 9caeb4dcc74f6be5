// SPDX-License-Identifier: Apache-2.0
#include "core/async/account.h"

#include <time.h>

namespace gantry::async {
namespace {

struct Meter {
  AccountPtr account;
  uint64_t since_ns = 0;
};

Meter& ThisThreads() {
  static thread_local Meter meter;
  return meter;
}

uint64_t CpuNs() {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

/// What has run up goes to who is on the meter; returns whose that was.
AccountPtr Change(Meter& meter, AccountPtr to) {
  const uint64_t now = CpuNs();
  if (meter.account) {
    meter.account->cpu_ns.fetch_add(now - meter.since_ns, std::memory_order_relaxed);
  }
  meter.since_ns = now;
  return std::exchange(meter.account, std::move(to));
}

}  // namespace

Charged::Charged(AccountPtr account) : changed_(ThisThreads().account != account) {
  if (changed_) {
    before_ = Change(ThisThreads(), std::move(account));
  }
}

Charged::~Charged() {
  if (changed_) {
    Change(ThisThreads(), std::move(before_));
  }
}

const AccountPtr& Charged::Current() { return ThisThreads().account; }

}  // namespace gantry::async
