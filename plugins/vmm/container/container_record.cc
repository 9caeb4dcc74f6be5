// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/container_record.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

bool ContainerRecord::TakeUp(const std::string& blob) {
  const Json json = ReadJson(blob);
  const std::lock_guard lock(mutex_);
  // The one seam to a library that throws: a record that was damaged.
  try {
    json.at("oom_kills").get_to(told_kills_);
    json.at("cpu_quota").get_to(limits_.cpu_quota);
    json.at("cpu_period").get_to(limits_.cpu_period);
    json.at("memory").get_to(limits_.memory);
  } catch (const Json::exception&) {
    return false;
  }
  is_kept_ = true;
  return true;
}

Status ContainerRecord::Keep(const Limits& limits) {
  const std::lock_guard lock(mutex_);
  is_kept_ = true;
  limits_ = limits;
  return Save();
}

Limits ContainerRecord::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

Status ContainerRecord::Save() {
  if (context_ == nullptr) {
    return {};
  }
  const Json json = {{"oom_kills", told_kills_},
                     {"cpu_quota", limits_.cpu_quota},
                     {"cpu_period", limits_.cpu_period},
                     {"memory", limits_.memory}};
  return context_->Save(json.dump());
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
