// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/container_record.h"

#include <chrono>

#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::vmm {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What is on disk.
struct Blob {
  /// It is a container's, of this form: what is empty, or of something else, has another number.
  uint32_t form = 0;
  uint64_t oom_kills = 0;
  int64_t cpu_quota = 0;
  uint64_t cpu_period = 0;
  int64_t memory = 0;
  int64_t made_at_ns = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.form);
    field(2, self.oom_kills);
    field(3, self.cpu_quota);
    field(4, self.cpu_period);
    field(5, self.memory);
    field(6, self.made_at_ns);
  }
};

constexpr uint32_t kForm = 1;

}  // namespace

bool ContainerRecord::TakeUp(const std::string& blob) {
  const auto kept = DecodeProto<Blob>(blob);
  if (!kept || kept->form != kForm) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  told_kills_ = kept->oom_kills;
  limits_ = {.cpu_quota = kept->cpu_quota, .cpu_period = kept->cpu_period, .memory = kept->memory};
  made_at_ns_ = kept->made_at_ns;
  is_kept_ = true;
  return true;
}

Status ContainerRecord::Keep(const Limits& limits) {
  const std::lock_guard lock(mutex_);
  if (!is_kept_) {
    made_at_ns_ = ExitedNow(0).exited_at_ns;
  }
  is_kept_ = true;
  limits_ = limits;
  return Save();
}

Limits ContainerRecord::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

int64_t ContainerRecord::made_at_ns() const {
  const std::lock_guard lock(mutex_);
  return made_at_ns_;
}

Status ContainerRecord::Save() {
  if (context_ == nullptr) {
    return {};
  }
  return context_->Save(EncodeProto(Blob{.form = kForm,
                                         .oom_kills = told_kills_,
                                         .cpu_quota = limits_.cpu_quota,
                                         .cpu_period = limits_.cpu_period,
                                         .memory = limits_.memory,
                                         .made_at_ns = made_at_ns_}));
}

void ContainerRecord::OutOfMemory(uint64_t kills) {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr || kills <= told_kills_ || !rate_.Take(Now())) {
    return;
  }
  told_kills_ = kills;
  context_->OutOfMemory();
  if (is_kept_) {
    IgnoreError(Save(), "then the next engine tells it again");
  }
}

void ContainerRecord::Retire() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
}

}  // namespace gantry::vmm
