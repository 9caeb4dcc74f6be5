// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/faults.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::fault {
namespace {

Faults* instance = nullptr;

std::string TextOf(const NameBytes& name) { return {name.data()}; }

}  // namespace

std::string Describe(const Fault& fault) {
  const std::string what = fault.failure == 0 ? "kill" : ErrnoName(fault.failure);
  return what + " at \"" + fault.point + "\" no. " + std::to_string(fault.nth);
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
  control_->failure = fault.failure;
  control_->hits = 0;
  control_->fired = 0;
  control_->armed.store(1, std::memory_order_release);
}

bool Faults::happened() const { return control_->fired != 0; }

bool Faults::Disarm() {
  control_->armed = 0;
  return happened();
}

}  // namespace gantry::fault
