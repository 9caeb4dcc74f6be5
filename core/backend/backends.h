// SPDX-License-Identifier: Apache-2.0
//
// The backends of a configuration, loaded when first needed. A plugin that has not
// been seen before is loaded in a process of its own first, so that one that
// crashes while it is loaded does not take the engine with it again and again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/backend/checked_backend.h"
#include "core/backend/plugin_host.h"
#include "core/config/config.h"

namespace gantry::backend {

/// What became of a backend, for the operator.
struct BackendState {
  std::string name;
  std::string version;
  std::string path;
  /// Empty: in use.
  std::string error;
};

/// The plugin's file: as configured, else LIBEXEC/plugins/libgantry_NAME.so.
std::string PluginPath(const config::Config& config, const std::string& libexec,
                       const std::string& name);

/// Has a handler's backend check its options. Errors: as
/// `SandboxBackend::CheckOptions`, after the option's place and the handler.
Status CheckOptions(const config::Config& config, const std::string& name,
                    const config::Handler& handler, SandboxBackend& backend);

/// Whether a plugin that was probed is remembered, below the run directory. Who only looks at a
/// node leaves nothing on it.
enum class Mark { kLeft, kNotLeft };

/// Thread: any.
class Backends {
 public:
  /// `program`: this program itself, to probe with; it must handle
  /// `--probe-plugin PATH NAME`.
  Backends(const config::Config& config, std::string libexec, std::string run_dir,
           std::string program, Mark mark = Mark::kLeft);

  /// The backend lives as long as the process. Handlers whose options it refuses
  /// are logged, and it makes no sandbox with them or with others that it refuses (see
  /// checked_backend.h). Errors: why it cannot be used; asked again it is tried again.
  /// Thread: workers. Blocks: for the disk and the plugin's constructors.
  Result<SandboxBackend*> Find(const std::string& name);
  /// Blocks: never, also while a plugin is loaded.
  std::vector<BackendState> States() const;

  /// What each backend in use counts, by its name. Thread: workers.
  std::map<std::string, std::vector<BackendCount>> Counts() const;
  /// The engine ends: tells all that are in use. Thread: the engine's main one. Blocks: as
  /// they do.
  void Leave() const;

 private:
  struct InPlace {
    LoadedPlugin plugin;
    std::unique_ptr<CheckedBackend> checked;
  };

  std::string PathOf(const std::string& name) const { return PluginPath(config_, libexec_, name); }

  Status ProbeOnce(const std::string& path, const std::string& name) const;
  SandboxBackend* Loaded(const std::string& name) const;
  std::map<std::string, SandboxBackend*> InUse() const;
  Mutex& LoadingOf(const std::string& name);
  Result<LoadedPlugin> Load(const std::string& name) const;
  void CheckHandlers(const std::string& name, CheckedBackend& backend) const;

  const config::Config& config_;
  const std::string libexec_;
  const std::string run_dir_;
  const std::string program_;
  const Mark mark_;
  mutable Mutex mutex_;
  /// By name: held while that plugin is loaded, for each is loaded once, and one that
  /// hangs holds up nobody else. Taken before the other.
  std::map<std::string, std::unique_ptr<Mutex>, std::less<>> loading_ GANTRY_GUARDED_BY(mutex_);
  std::map<std::string, InPlace, std::less<>> loaded_ GANTRY_GUARDED_BY(mutex_);
  std::map<std::string, BackendState, std::less<>> failed_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::backend
