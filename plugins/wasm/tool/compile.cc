// SPDX-License-Identifier: Apache-2.0
//
// What Create does with a module, and no container: it is read, looked at and compiled by the same
// code, and lies in the cache then under the same key. An engine and this program that have the
// same module at the same time have one compile of it (ArtifactStore::Lock).
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <ostream>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/context/own_processes.h>
#include <gantry/toolkit/descriptors/helper.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/fetch/image.h"
#include "plugins/wasm/kind.h"
#include "plugins/wasm/module/image_file.h"
#include "plugins/wasm/module/sha256.h"
#include "plugins/wasm/tool/work.h"

namespace gantry::wasm::tool {
namespace {

/// No name of an image begins so.
bool IsFile(std::string_view name) { return name.starts_with('/') || name.starts_with('.'); }

CacheOptions OptionsOf(const Arguments& arguments) {
  CacheOptions options;
  options.directory = arguments.directory;
  options.limits.time = arguments.limit;
  // Who calls it has chosen the module: all of it is for any.
  options.limits.memory = arguments.memory;
  options.limits.max_memory = arguments.memory;
  options.retry = true;
  return options;
}

Result<ModuleBytes> ModuleOfFile(const std::string& path, uint64_t most) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) {
    return FailErrno(errno, "open '{}'", path);
  }
  GANTRY_TRY(const ImageFile file, OpenImageFile(place, path));
  return ReadModule(file, most, path);
}

/// The layer of an image that is a module.
Result<ModuleBytes> ModuleOfImage(SandboxContext& context, const std::string& name,
                                  const Arguments& arguments) {
  GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-wasm-fetch"));
  fetch::ImageQuestion question;
  question.address = arguments.address;
  question.ns = arguments.ns;
  question.image = name;
  question.program = arguments.program;
  question.max_bytes = arguments.max_module_bytes;
  GANTRY_TRY(fetch::FoundImage found, fetch::FindImageModule(context, program, question));
  if (!found.module) {
    return Fail(
        Code::kFailedPrecondition,
        "image '{}': none of its {} layers is a module; one that is a file of its root file "
        "system is compiled by its path: take it out of the image, as `ctr images mount` "
        "shows it, and name the FILE",
        name, found.layers);
  }
  return std::move(*found.module);
}

class Compiling {
 public:
  /// `warned`: set, also while this ends, where something could not be kept.
  Compiling(const Arguments& arguments, std::ostream& err, std::atomic<bool>& warned)
      : arguments_(arguments),
        err_(err),
        warned_(warned),
        artifacts_(
            context_, [] { return OpenHelper("gantry-wasm-compile"); }, OptionsOf(arguments)) {}

  /// A line about what is in the cache now.
  Result<std::string> Compile(const std::string& name) {
    GANTRY_TRY(const ModuleBytes module, IsFile(name)
                                             ? ModuleOfFile(name, arguments_.max_module_bytes)
                                             : ModuleOfImage(context_, name, arguments_));
    GANTRY_CHECK_OK(CheckModule(module, name));
    auto artifact = artifacts_.Get(module, {"gantryctl", "wasm"}, kForEver);
    if (!artifact) {
      return std::unexpected(std::move(artifact).error().Within(Format("'{}'", name)));
    }
    GANTRY_TRY(const uint64_t bytes, FileSize(artifact->file.get()));
    return Format("{}: {} sha256:{}, {} bytes of {} compiled\n", name, KindName(artifact->kind),
                  HexOf(module.digest), bytes, module.size);
  }

 private:
  /// The compiler has its own limit, and a stuck process that of the cache.
  static constexpr std::chrono::hours kForEver{24};

  void Log(std::string_view message) {
    const std::lock_guard lock(mutex_);
    err_ << "gantryctl wasm: " << message << "\n";
    warned_ = true;
  }

  const Arguments& arguments_;
  std::ostream& err_;
  std::atomic<bool>& warned_;
  std::mutex mutex_;
  OwnProcesses context_{[this](LogLevel, std::string_view message) { Log(message); }};
  Artifacts artifacts_;
};

}  // namespace

bool Compile(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  if (geteuid() != 0) {
    err << "gantryctl wasm: the cache is root's: call it as root\n";
    return false;
  }
  bool all = true;
  std::atomic<bool> warned = false;
  {
    Compiling compiling(arguments, err, warned);
    for (const std::string& name : arguments.what) {
      const auto line = compiling.Compile(name);
      if (line) {
        out << *line << std::flush;
      } else {
        err << "gantryctl wasm: " << line.error().message << "\n";
        all = false;
      }
    }
    // Its end waits until all is on disk, or has been complained of.
  }
  return all && !warned;
}

}  // namespace gantry::wasm::tool
