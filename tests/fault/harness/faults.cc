// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/faults.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::fault {
namespace {

constexpr timespec kBetweenLooks{0, 20'000'000};

Faults* instance = nullptr;

int32_t FailureOf(Trouble trouble) {
  switch (trouble) {
    case Trouble::kKill:
      return 0;
    case Trouble::kNoSpace:
      return ENOSPC;
    case Trouble::kNoDescriptors:
      return EMFILE;
    default:
      return kStand;
  }
}

std::string TextOf(const NameBytes& name) { return {name.data()}; }

}  // namespace

const char* NameOf(Trouble trouble) {
  switch (trouble) {
    case Trouble::kKill:
      return "kill";
    case Trouble::kNoSpace:
      return "ENOSPC";
    case Trouble::kNoDescriptors:
      return "EMFILE";
    case Trouble::kUpgrade:
      return "upgrade";
    case Trouble::kCrashingUpgrade:
      return "crashing upgrade";
    case Trouble::kRefusedUpgrade:
      return "refused upgrade";
    case Trouble::kSilentUpgrade:
      return "silent upgrade";
    case Trouble::kKeeperUpgrade:
      return "keeper upgrade";
  }
  return "";
}

bool MayFail(Trouble trouble) {
  return trouble == Trouble::kNoSpace || trouble == Trouble::kNoDescriptors;
}

std::string Describe(const Fault& fault) {
  return std::string(NameOf(fault.trouble)) + " at \"" + fault.point + "\" no. " +
         std::to_string(fault.nth);
}

Faults::Faults(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  void* at = MAP_FAILED;
  if (fd && ftruncate(fd.get(), sizeof(Control)) == 0) {
    at = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  }
  if (at == MAP_FAILED) {
    std::perror(path.c_str());
    std::abort();
  }
  control_ = static_cast<Control*>(at);
  instance = this;
}

Faults::~Faults() { munmap(control_, sizeof(Control)); }

Faults& Faults::Get() { return *instance; }

void Faults::Record() {
  const uint32_t passed = std::min<uint32_t>(control_->passed, kMaxPassed);
  for (uint32_t i = 0; i < passed; ++i) {
    control_->trace[i].kinds = 0;
  }
  control_->passed = 0;
  control_->recording = 1;
}

std::vector<PassedPoint> Faults::Recorded() {
  control_->recording = 0;
  std::vector<PassedPoint> points;
  const uint32_t passed = std::min<uint32_t>(control_->passed, kMaxPassed);
  for (uint32_t i = 0; i < passed; ++i) {
    const uint32_t kinds = control_->trace[i].kinds.load(std::memory_order_acquire);
    if (kinds == 0) {
      continue;  // Just being written.
    }
    const std::string name = TextOf(control_->trace[i].name);
    const auto found = std::ranges::find(points, name, &PassedPoint::name);
    PassedPoint& point = found == points.end() ? points.emplace_back(name) : *found;
    point.kinds |= kinds;
    ++point.times;
  }
  return points;
}

void Faults::Arm(const Fault& fault) {
  control_->armed = 0;
  control_->name = {};
  std::ranges::copy(fault.point.substr(0, kMaxName), control_->name.begin());
  control_->nth = fault.nth;
  control_->failure = FailureOf(fault.trouble);
  control_->hits = 0;
  control_->fired = 0;
  control_->released = 0;
  control_->armed.store(1, std::memory_order_release);
}

bool Faults::happened() const { return control_->fired != 0; }

bool Faults::WaitUntilHappened(const std::stop_token& stop) const {
  while (!happened() && !stop.stop_requested()) {
    syscall(SYS_futex, &control_->fired, FUTEX_WAIT, 0, &kBetweenLooks, nullptr, 0);
  }
  return happened();
}

void Faults::Release() {
  control_->released = 1;
  syscall(SYS_futex, &control_->released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Faults::Disarm() {
  control_->armed = 0;
  return happened();
}

}  // namespace gantry::fault
