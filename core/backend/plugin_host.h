// SPDX-License-Identifier: Apache-2.0
//
// Loads backends from shared objects. A plugin is code that will run as root,
// so who could have written the file is checked before it is opened, and what
// it says of itself before anything of it is called. A plugin that is refused
// costs nothing but itself.
//
// Never unloaded: objects, types and texts of a plugin may be referred to from
// anywhere. A plugin is replaced by restarting the engine, which nobody notices.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/backend.h>
#include <gantry/error.h>

namespace gantry::backend {

struct LoadedPlugin {
  std::string name;
  std::string version;
  std::string path;
  std::unique_ptr<SandboxBackend> backend;
};

/// Thread: any; of one plugin one at a time (dlopen runs its constructors).
class PluginHost {
 public:
  /// Loads the file and makes its backend. `name`: what the configuration
  /// calls it, and what it must call itself.
  /// Errors, each saying what to do: kNotFound; kPermissionDenied: owner or
  /// mode of the file or its directory; kInvalidArgument: no absolute path, no
  /// regular file, no ELF object of this machine; kFailedPrecondition: it does
  /// not link, or is not made for this gantry; kAborted: another file came in its place
  /// meanwhile; else what its factory said.
  /// Blocks: for the disk and the plugin's constructors.
  static Result<LoadedPlugin> Load(const std::string& path, const std::string& name,
                                   const std::string& options_json);

  /// All of `Load` but the factory: `NAME VERSION`. For a process of its own,
  /// see `Probe`.
  static Result<std::string> Inspect(const std::string& path, const std::string& name);

  /// Has `program` (`gantryd --probe-plugin PATH NAME`) inspect the file in a
  /// process of its own, so that a plugin that crashes when it is loaded does
  /// not take the engine with it. `program` ends with `RunProbe`.
  /// Errors: as `Inspect`; kFailedPrecondition where the probe crashed;
  /// kDeadlineExceeded where it did not end. Blocks: up to `limit`.
  static Result<std::string> Probe(const std::string& program, const std::string& path,
                                   const std::string& name,
                                   std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// All of `Load`, the factory too, in a process of its own (`PROGRAM --probe-plugin
  /// PATH NAME OPTIONS`). Errors: as `Load` and `Probe`.
  static Result<std::string> ProbeLoad(const std::string& program, const std::string& path,
                                       const std::string& name, const std::string& options_json,
                                       std::chrono::milliseconds limit = std::chrono::seconds(10));

  /// The other side of both: prints one line, returns the exit code. `options_json`:
  /// null for `Probe`.
  static int RunProbe(const std::string& path, const std::string& name,
                      const std::string* options_json = nullptr);
};

}  // namespace gantry::backend
