// SPDX-License-Identifier: Apache-2.0
//
// gantryd, the engine. The keeper starts it with their link as descriptor 3.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/backend/plugin_host.h"
#include "core/config/config.h"
#include "core/engine/command_line.h"
#include "core/engine/engine.h"
#include "core/engine/features.h"
#include "core/link/messages.h"
#include "core/link/paths.h"
#include "core/log/log.h"
#include "core/log/rotation.h"
#include "core/os/memory.h"
#include "core/os/process.h"

namespace {

using gantry::Code;
using gantry::engine::CommandLine;

int RunEngine(CommandLine line) {
  struct stat info{};
  if (fstat(gantry::link::kEngineLinkFd, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    std::fputs("gantryd: descriptor 3 is no socket: gantry-keeper starts this program\n", stderr);
    return 2;
  }
  std::string config_error;
  gantry::Result<gantry::config::Config> config = gantry::config::Load(line.config);
  if (!config) {
    config_error = config.error().message;
    gantry::LogError("{}; nothing new is created until it is mended", config_error);
    config = gantry::config::Defaults();
  }
  gantry::log::SetLevel(config->log_level);
  gantry::log::KeepBounded(line.run_dir + "/gantry.log", gantry::link::kMaxLogBytes);
  gantry::Result<gantry::cgroup::CgroupHierarchy> cgroups =
      gantry::cgroup::CgroupHierarchy::OfNode();
  if (!cgroups) {
    gantry::LogWarning("{}: no statistics, limits, pausing or OOM events", cgroups.error().message);
    cgroups = gantry::cgroup::CgroupHierarchy();
  }
  gantry::engine::Engine engine(std::move(line), std::move(*config), std::move(config_error),
                                std::move(*cgroups), gantry::UniqueFd(gantry::link::kEngineLinkFd));
  const int code = engine.Run();
  // What runs outlives the engine; taking objects apart would only touch it.
  std::fflush(stderr);
  _exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  gantry::os::SaveMemory();
  gantry::os::IgnoreSigpipe();
  gantry::Result<CommandLine> line = gantry::engine::ParseCommandLine(argc, argv);
  if (!line) {
    std::fprintf(stderr, "gantryd: %s\n", line.error().message.c_str());
    return 2;
  }
  if (line->help) {
    std::fputs(gantry::engine::Usage().c_str(), stdout);
    return 0;
  }
  if (line->version) {
    std::puts("gantryd " GANTRY_VERSION);
    return 0;
  }
  if (!line->probe_path.empty()) {
    return gantry::backend::PluginHost::RunProbe(line->probe_path, line->probe_name);
  }
  if (line->features) {
    return gantry::engine::PrintFeatures(*line);
  }
  return RunEngine(std::move(*line));
}
