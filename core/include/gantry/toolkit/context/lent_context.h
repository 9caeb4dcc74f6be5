// SPDX-License-Identifier: Apache-2.0
//
// For a sandbox that is none of the core's: lends it the processes and watches of the one that it
// is run for, or of the backend itself, and keeps all else from it; what it stores is its own. It
// is not taken up by another engine; what is left of it then ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/toolkit/context/forwarding_context.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry {

/// Thread: as `SandboxContext`; must not outlive `host`.
class LentContext : public ForwardingSandboxContext {
 public:
  /// `name`: what its spawns are called, and who speaks in the log.
  LentContext(SandboxContext& host, std::string name)
      : ForwardingSandboxContext(host), name_(std::move(name)) {}

  /// From now on there is time, whatever the call that it is run for has left.
  void BeginRemoval() { removing_ = true; }

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    request.tag = TagOf(request.tag);
    return host().Spawn(std::move(request));
  }

  Result<std::shared_ptr<HostProcess>> AdoptAs(HostPid pid, std::string_view tag) override {
    return host().AdoptAs(pid, TagOf(tag));
  }

  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override {
    return host().FindSpawned(TagOf(tag));
  }

  Status Bind(std::shared_ptr<HostProcess>) override { return {}; }

  void SetPid(HostPid) override {}

  void Exited(ExitStatus) override {}

  Status Store(std::string_view name, const UniqueFd& fd) override {
    GANTRY_TRY(UniqueFd copy, fd.Duplicate());
    const MutexLock lock(mutex_);
    stored_[std::string(name)] = std::move(copy);
    return {};
  }

  Status StoreAll(std::span<const NamedFd> all) override {
    for (const NamedFd& one : all) {
      GANTRY_CHECK_OK(Store(one.name, one.fd));
    }
    return {};
  }

  Result<UniqueFd> Take(std::string_view name) override {
    const MutexLock lock(mutex_);
    const auto found = stored_.find(name);
    if (found == stored_.end()) {
      return Fail(Code::kNotFound, "take '{}': {} has stored nothing of that name", name, name_);
    }
    return found->second.Duplicate();
  }

  void Drop(std::string_view name) override {
    const MutexLock lock(mutex_);
    if (const auto found = stored_.find(name); found != stored_.end()) {
      stored_.erase(found);
    }
  }

  Status Save(std::string) override { return {}; }

  void Log(LogLevel level, std::string_view message) override {
    host().Log(level, name_ + ": " + std::string(message));
  }

  void Count(std::string_view, uint64_t) override {}

  std::chrono::milliseconds TimeLeft() const override {
    return removing_ ? std::chrono::milliseconds::max() : host().TimeLeft();
  }

 private:
  std::string TagOf(std::string_view tag) const { return name_ + "/" + std::string(tag); }

  const std::string name_;
  bool removing_ = false;
  Mutex mutex_;
  std::map<std::string, UniqueFd, std::less<>> stored_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry
