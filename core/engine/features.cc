// SPDX-License-Identifier: Apache-2.0
//
// `gantryd --features`, a process that ends with its answer: find the handler, load its plugin,
// ask it. Before anything else stdout is put aside and stderr takes its place, so that what a
// plugin prints cannot become a part of the answer. The answer ends with a newline, by which the
// shim knows that it is whole.
#include "core/engine/features.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/unique_fd.h>

#include "core/backend/backends.h"
#include "core/backend/guard.h"
#include "core/backend/plugin_host.h"
#include "core/config/config.h"
#include "core/link/messages.h"
#include "core/link/run_dir.h"
#include "core/oci/runtime_options.h"
#include "core/os/fs.h"
#include "core/os/standard_streams.h"

namespace gantry::engine {
namespace {

/// runc's and crun's are of five KiB.
constexpr JsonLimits kFeaturesJson = {.bytes = size_t{512} << 10, .depth = 32, .values = 20'000};
constexpr size_t kMaxOptionsBytes = size_t{4} << 20;

/// Where the run directory is not, or not root's alone, nothing is kept.
std::string KeepDir(const std::string& run_dir, const std::string& backend) {
  std::string dir = Format("{}/features/{}", run_dir, backend);
  if (!link::CheckRunDir(run_dir) || !os::MakeDirs(dir, 0700)) {
    dir.clear();
  }
  return dir;
}

Result<std::string> Answer(const CommandLine& line) {
  GANTRY_TRY(const config::Config config, config::Load(line.config));
  GANTRY_TRY(std::string options, os::ReadInput(kMaxOptionsBytes));
  return FindFeatures(config, line, {line.handler, line.options_type, std::move(options)});
}

}  // namespace

Result<std::string> FindFeatures(const config::Config& config, const CommandLine& line,
                                 const FeaturesQuestion& question) {
  GANTRY_TRY(oci::RuntimeOptions options,
             oci::DecodeRuntimeOptions(question.options_type, question.options));
  GANTRY_CHECK_OK(oci::ReadConfigPath(options));
  const std::string& name = options.handler.empty() ? question.handler : options.handler;
  const config::Handler* const handler = config.FindHandler(name);
  if (handler == nullptr) {
    return Fail(Code::kInvalidArgument, "find handler '{}': not in the configuration '{}'", name,
                config.file.empty() ? line.config : config.file);
  }
  FeaturesRequest request;
  GANTRY_TRY(request.options_json, oci::MergeOptions(handler->options.json, options.json));
  request.keep_dir = KeepDir(line.run_dir, handler->backend);
  const auto configured = config.backends.find(handler->backend);
  GANTRY_TRY(const backend::LoadedPlugin loaded,
             backend::PluginHost::Load(
                 backend::PluginPath(config, line.libexec, handler->backend), handler->backend,
                 configured == config.backends.end() ? "{}" : configured->second.options.json));
  auto features =
      backend::GuardedCall(handler->backend, [&] { return loaded.backend->Features(request); });
  if (features && !features->empty()) {
    const std::string what = Format("the features that backend '{}' tells", handler->backend);
    GANTRY_CHECK_OK(CheckJson(*features, what, kFeaturesJson));
    features->erase(0, features->find_first_not_of(" \t\r\n"));
    if (!features->starts_with('{')) {
      return Fail(Code::kInvalidArgument, "{}: no JSON object", what);
    }
  }
  return features;
}

int PrintFeatures(const CommandLine& line) {
  // What a plugin prints is no answer.
  const UniqueFd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!out || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return 1;
  }
  const Result<std::string> features = Answer(line);
  const Status printed =
      os::Print(out.get(), (features ? *features : features.error().message) + "\n");
  return features && printed ? 0 : 1;
}

}  // namespace gantry::engine
