// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/needs.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/remove.h>
#include <gantry/toolkit/pod/holder.h>
#include <gantry/toolkit/process/ask_program.h>

#include "plugins/wasm/launch.h"

namespace gantry::wasm {
namespace {

/// The first line that the program says of itself; none: it does not answer.
std::string LineOf(const UniqueFd& program) {
  std::string line = AskProgram({.program = Format("/proc/self/fd/{}", program.get()),
                                 .arguments = {"describe"},
                                 .with_errors = true})
                         .value_or("");
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

/// The compiler's own line, with the engine's version.
NodeNeed EngineNeed(const Parts& parts) {
  NodeNeed need;
  need.what = "a WebAssembly engine, for modules and components";
  const auto program = parts.open_program("gantry-wasm-compile");
  if (!program) {
    need.detail = program.error().code == Code::kNotFound ? kNoEngine : program.error().message;
    return need;
  }
  const std::string line = LineOf(*program);
  need.met = !line.empty();
  need.detail = need.met ? line : "the compiler in the plugin does not answer; install it again";
  return need;
}

/// What gantry-init needs. Source: docs/gantry-init.md.
NodeNeed KernelNeed() {
  constexpr int kMajor = 5;
  constexpr int kMinor = 12;
  utsname names{};
  int major = 0;
  int minor = 0;
  const bool read = uname(&names) == 0 && std::sscanf(names.release, "%d.%d", &major, &minor) == 2;
  return {.what = "Linux 5.12",
          .met = read && (major > kMajor || (major == kMajor && minor >= kMinor)),
          .detail = names.release};
}

NodeNeed CgroupNeed() {
  const auto node = cgroup::NodeCgroups::At();
  const bool met = node.mode != cgroup::CgroupMode::kNone;
  return {.what = "cgroups",
          .met = met,
          .detail = met ? std::string(cgroup::kCgroupRoot)
                        : Format("{}: not mounted; mount cgroup2 there", cgroup::kCgroupRoot)};
}

NodeNeed HolderNeed() {
  const auto holder = FindHolder();
  return {.what = "gantry-pause, for pods without a pause container",
          .met = holder.has_value(),
          .optional = true,
          .detail = holder ? *holder : holder.error().message};
}

}  // namespace

NodeNeed WasmEdgeNeed(const Parts& parts) {
  NodeNeed need;
  need.what = "WasmEdge, for the option 'engine: wasmedge'";
  need.optional = true;
  const auto program = parts.open_program(kWasmEdgeProgram);
  if (!program) {
    need.detail = program.error().code == Code::kNotFound
                      ? "this gantry was built without it: install libwasmedge-dev where it is "
                        "built, and build it again"
                      : program.error().message;
    return need;
  }
  const std::string line = LineOf(*program);
  need.met = line.starts_with("wasmedge ");
  need.detail = need.met ? line
                         : Format("'{}' in the plugin does not answer: install libwasmedge0 ({})",
                                  kWasmEdgeProgram, line);
  return need;
}

std::vector<NodeNeed> FindNeeds(const Parts& parts) {
  return {EngineNeed(parts), WasmEdgeNeed(parts), KernelNeed(), CgroupNeed(), HolderNeed()};
}

}  // namespace gantry::wasm
