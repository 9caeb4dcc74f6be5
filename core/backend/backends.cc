// SPDX-License-Identifier: Apache-2.0
#include "core/backend/backends.h"

#include <sys/stat.h>

#include <utility>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/backend/guard.h"
#include "core/backend/plugin_file.h"
#include "core/config/config.h"
#include "core/log/log.h"
#include "core/os/fs.h"

namespace gantry::backend {
namespace {

/// Tells one build of a file from another.
std::string IdentityOf(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return {};
  }
  return Format("{} {}:{} {} {}.{}", path, info.st_dev, info.st_ino, info.st_size,
                info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace

std::string PluginPath(const config::Config& config, const std::string& libexec,
                       const std::string& name) {
  const auto configured = config.backends.find(name);
  if (configured != config.backends.end() && !configured->second.path.empty()) {
    return configured->second.path;
  }
  return Format("{}/plugins/libgantry_{}.so", libexec, name);
}

Status CheckOptions(const config::Config& config, const std::string& name,
                    const config::Handler& handler, SandboxBackend& backend) {
  Status checked =
      GuardedCall(handler.backend, [&] { return backend.CheckOptions(handler.options.json); });
  if (!checked) {
    std::string& message = checked.error().message;
    message =
        Format("{}: handler '{}': {}", config::PlaceOf(config, handler, message), name, message);
  }
  return checked;
}

Backends::Backends(const config::Config& config, std::string libexec, std::string run_dir,
                   std::string program, Mark mark)
    : config_(config),
      libexec_(std::move(libexec)),
      run_dir_(std::move(run_dir)),
      program_(std::move(program)),
      mark_(mark) {}

/// A plugin that has been probed in this state is not probed again until the
/// node restarts or the file changes.
Status Backends::ProbeOnce(const std::string& path, const std::string& name) const {
  GANTRY_TRY([[maybe_unused]] const UniqueFd file, OpenPluginFile(path));
  const std::string dir = run_dir_ + "/plugins";
  const std::string mark = Format("{}/{}.probed", dir, name);
  const std::string identity = IdentityOf(path);
  if (const Result<std::string> probed = ReadFile(mark, 8192);
      probed && !identity.empty() && *probed == identity) {
    return {};
  }
  GANTRY_TRY(const std::string found, PluginHost::Probe(program_, path, name));
  LogInfo("plugin '{}' is {}", path, found);
  if (mark_ == Mark::kNotLeft) {
    return {};
  }
  Status kept = os::MakeDirs(dir, 0700);
  if (kept) {
    kept = ReplaceFile(mark, identity, 0600);
  }
  IgnoreError(kept, "without the mark it is probed again, that is all");
  return {};
}

Result<LoadedPlugin> Backends::Load(const std::string& name) const {
  const std::string path = PathOf(name);
  GANTRY_CHECK_OK(ProbeOnce(path, name));
  const auto configured = config_.backends.find(name);
  return PluginHost::Load(
      path, name, configured == config_.backends.end() ? "{}" : configured->second.options.json);
}

void Backends::CheckHandlers(const std::string& name, CheckedBackend& backend) const {
  for (const auto& [called, handler] : config_.handlers) {
    if (handler.backend != name) {
      continue;
    }
    const Status checked = CheckOptions(config_, called, handler, backend);
    backend.AddHandler(handler.options.json, checked);
    if (!checked) {
      LogWarning("its containers cannot be created: {}", checked.error().message);
    }
  }
}

/// Null: not yet.
SandboxBackend* Backends::Loaded(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = loaded_.find(name);
  return found == loaded_.end() ? nullptr : found->second.checked.get();
}

Mutex& Backends::LoadingOf(const std::string& name) {
  const MutexLock lock(mutex_);
  std::unique_ptr<Mutex>& loading = loading_[name];
  if (!loading) {
    loading = std::make_unique<Mutex>();
  }
  return *loading;
}

Result<SandboxBackend*> Backends::Find(const std::string& name) {
  if (SandboxBackend* const backend = Loaded(name)) {
    return backend;
  }
  const MutexLock one_load(LoadingOf(name));
  if (SandboxBackend* const backend = Loaded(name)) {
    return backend;
  }
  Result<LoadedPlugin> loaded = Load(name);
  if (!loaded) {
    const MutexLock lock(mutex_);
    failed_[name] = BackendState{name, {}, PathOf(name), loaded.error().message};
    return std::unexpected(std::move(loaded).error().Within(Format("load backend '{}'", name)));
  }
  auto checked = std::make_unique<CheckedBackend>(name, *loaded->backend);
  SandboxBackend* const backend = checked.get();
  CheckHandlers(name, *checked);
  const MutexLock lock(mutex_);
  failed_.erase(name);
  loaded_[name] = {std::move(*loaded), std::move(checked)};
  return backend;
}

std::map<std::string, SandboxBackend*> Backends::InUse() const {
  const MutexLock lock(mutex_);
  std::map<std::string, SandboxBackend*> backends;
  for (const auto& [name, one] : loaded_) {
    backends[name] = one.checked.get();
  }
  return backends;
}

std::map<std::string, std::vector<BackendCount>> Backends::Counts() const {
  std::map<std::string, std::vector<BackendCount>> all;
  for (const auto& [name, backend] : InUse()) {
    auto counts = GuardedCall(
        name, [backend]() -> Result<std::vector<BackendCount>> { return backend->Counts(); });
    if (counts) {
      all[name] = std::move(*counts);
    } else {
      LogWarning("count of backend '{}': {}", name, counts.error().message);
    }
  }
  return all;
}

void Backends::Leave() const {
  for (const auto& [name, backend] : InUse()) {
    const Status left = GuardedCall(name, [backend]() -> Status {
      backend->Leave();
      return {};
    });
    if (!left) {
      LogWarning("leave backend '{}': {}", name, left.error().message);
    }
  }
}

std::vector<BackendState> Backends::States() const {
  const MutexLock lock(mutex_);
  std::vector<BackendState> states;
  states.reserve(loaded_.size() + failed_.size());
  for (const auto& [name, one] : loaded_) {
    states.push_back({name, one.plugin.version, one.plugin.path, {}});
  }
  for (const auto& [name, state] : failed_) {
    states.push_back(state);
  }
  return states;
}

}  // namespace gantry::backend
