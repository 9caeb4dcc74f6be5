// SPDX-License-Identifier: Apache-2.0
//
// A context that passes every call on to another one: the base of those that change a few. What is
// added to `SandboxContext` is added here, so that it does not get lost in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/context.h>

namespace gantry {

/// Thread: as `SandboxContext`. Owner: `host` is borrowed, and outlives this one.
class ForwardingSandboxContext : public SandboxContext {
 public:
  explicit ForwardingSandboxContext(SandboxContext& host) : host_(host) {}

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    return host_.Spawn(std::move(request));
  }

  Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) override { return host_.Adopt(pid); }

  Result<std::shared_ptr<HostProcess>> AdoptAs(HostPid pid, std::string_view tag) override {
    return host_.AdoptAs(pid, tag);
  }

  Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) override {
    return host_.Recover(pid, start_time);
  }

  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override {
    return host_.FindSpawned(tag);
  }

  Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) override {
    return host_.WatchReadable(fd, std::move(ready));
  }

  Status Bind(std::shared_ptr<HostProcess> process) override {
    return host_.Bind(std::move(process));
  }

  void SetPid(HostPid pid) override { host_.SetPid(pid); }

  void Exited(ExitStatus status) override { host_.Exited(status); }

  Status Store(std::string_view name, const UniqueFd& fd) override { return host_.Store(name, fd); }

  /// Who changes `Store` changes this, too.
  Status StoreAll(std::span<const NamedFd> all) override { return host_.StoreAll(all); }

  Result<UniqueFd> Take(std::string_view name) override { return host_.Take(name); }

  void Drop(std::string_view name) override { host_.Drop(name); }

  Status Save(std::string blob) override { return host_.Save(std::move(blob)); }

  void Log(LogLevel level, std::string_view message) override { host_.Log(level, message); }

  void Count(std::string_view name, uint64_t amount) override { host_.Count(name, amount); }

  std::chrono::milliseconds TimeLeft() const override { return host_.TimeLeft(); }

 protected:
  SandboxContext& host() const { return host_; }

 private:
  SandboxContext& host_;
};

}  // namespace gantry
