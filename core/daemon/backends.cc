// SPDX-License-Identifier: Apache-2.0
#include "core/daemon/backends.h"

#include <sys/stat.h>

#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"

namespace gantry::daemon {
namespace {

/// Tells one build of a file from another.
std::string IdentityOf(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return {};
  }
  return std::format("{} {}:{} {} {}.{}", path, info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace

Backends::Backends(const config::Config& config, std::string libexec, std::string run_dir,
                   std::string program)
    : config_(config),
      libexec_(std::move(libexec)),
      run_dir_(std::move(run_dir)),
      program_(std::move(program)) {}

std::string Backends::PathOf(const std::string& name) const {
  const auto configured = config_.backends.find(name);
  if (configured != config_.backends.end() && !configured->second.path.empty()) {
    return configured->second.path;
  }
  return std::format("{}/plugins/libgantry_{}.so", libexec_, name);
}

/// A plugin that has been probed in this state is not probed again until the
/// node restarts or the file changes.
Status Backends::ProbeOnce(const std::string& path, const std::string& name) const {
  const std::string dir = run_dir_ + "/plugins";
  const std::string mark = std::format("{}/{}.probed", dir, name);
  const std::string identity = IdentityOf(path);
  if (const Result<std::string> probed = os::ReadFile(mark, 8192);
      probed && !identity.empty() && *probed == identity) {
    return {};
  }
  GANTRY_TRY(const std::string found, plugin::PluginHost::Probe(program_, path, name));
  LogInfo("plugin '{}' is {}", path, found);
  Status kept = os::MakeDirs(dir, 0700);
  if (kept) {
    kept = os::WriteFileAtomic(mark, identity, 0600);
  }
  IgnoreError(kept, "without the mark it is probed again, that is all");
  return {};
}

Result<plugin::LoadedPlugin> Backends::Load(const std::string& name) const {
  const std::string path = PathOf(name);
  GANTRY_CHECK_OK(ProbeOnce(path, name));
  const auto configured = config_.backends.find(name);
  return plugin::PluginHost::Load(
      path, name, configured == config_.backends.end() ? "{}" : configured->second.options.json);
}

Result<task::BackendRef> Backends::Find(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::string key(name);
  if (const auto found = loaded_.find(key); found != loaded_.end()) {
    return task::BackendRef{key, found->second.backend.get()};
  }
  Result<plugin::LoadedPlugin> loaded = Load(key);
  if (!loaded) {
    failed_[key] = BackendState{key, {}, PathOf(key), loaded.error().message};
    return std::unexpected(std::move(loaded).error().Within(std::format("load backend '{}'", key)));
  }
  failed_.erase(key);
  SandboxBackend* backend = loaded->backend.get();
  loaded_[key] = std::move(*loaded);
  return task::BackendRef{key, backend};
}

std::vector<BackendState> Backends::States() const {
  const std::lock_guard lock(mutex_);
  std::vector<BackendState> states;
  states.reserve(loaded_.size() + failed_.size());
  for (const auto& [name, plugin] : loaded_) {
    states.push_back({name, plugin.version, plugin.path, {}});
  }
  for (const auto& [name, state] : failed_) {
    states.push_back(state);
  }
  return states;
}

}  // namespace gantry::daemon
