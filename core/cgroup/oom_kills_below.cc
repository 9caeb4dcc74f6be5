// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/oom_kills_below.h"

#include <map>
#include <utility>

#include <gantry/toolkit/cgroup/counters.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::cgroup {
namespace {

constexpr size_t kMaxEventsBytes = 4096;

}  // namespace

std::shared_ptr<OomKillsBelow> OomKillsBelow::Of(const std::string& dir) {
  static Mutex mutex;
  // As many as there are parents of watched cgroups.
  static std::map<std::string, std::weak_ptr<OomKillsBelow>> all GANTRY_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  std::shared_ptr<OomKillsBelow> found = all[dir].lock();
  if (!found) {
    found = std::make_shared<OomKillsBelow>(dir);
    all[dir] = found;
  }
  return found->Begin() ? found : nullptr;
}

Result<uint64_t> OomKillsBelow::Read() const {
  GANTRY_TRY(const std::string text, ReadFile(path_, kMaxEventsBytes));
  const auto kills = FieldIn(text, "oom_kill");
  if (!kills) {
    return Fail(Code::kNotFound, "read '{}': it has no 'oom_kill'", path_);
  }
  return *kills;
}

bool OomKillsBelow::Begin() {
  const auto now = Read();
  const MutexLock lock(mutex_);
  told_ = now.value_or(0);
  return now.has_value();
}

void OomKillsBelow::Claim(uint64_t kills) {
  const MutexLock lock(mutex_);
  told_ += kills;
}

bool OomKillsBelow::ClaimOne() {
  const auto now = Read();
  const MutexLock lock(mutex_);
  if (!now || *now <= told_) {
    return false;
  }
  ++told_;
  return true;
}

}  // namespace gantry::cgroup
