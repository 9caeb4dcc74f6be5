// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/options.h"

#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/options/options.h>

namespace gantry::runc {
namespace {

const OptionTable<Options>& Table() {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  static const OptionTable<Options> table = {
      {"BinaryName", options::ProgramOrNone(&Options::binary_name)},
      {"Root", options::PathOrNone(&Options::root, options::EmptyPath::kKeeps)},
      {"CriuPath", options::PathOrNone(&Options::criu_path)},
      {"CriuImagePath", options::PathOrNone(&Options::criu_image_path)},
      {"CriuWorkPath", options::PathOrNone(&Options::criu_work_path)},
      {"ShimCgroup", options::Text(&Options::shim_cgroup)},
      {"NoPivotRoot", options::Flag(&Options::no_pivot_root)},
      {"NoNewKeyring", options::Flag(&Options::no_new_keyring)},
      {"SystemdCgroup", options::Flag(&Options::systemd_cgroup)},
      {"SealBinary", options::Flag(&Options::seal_binary)},
      {"IoUid", options::Number(&Options::io_uid, 0, kMost)},
      {"IoGid", options::Number(&Options::io_gid, 0, kMost)},
      {"TimeoutMs", options::Duration(&Options::timeout, kMost)},
      {"DeleteTimeoutMs", options::Duration(&Options::delete_timeout, kMost)},
      // Parts of the runc message that the core itself answers.
      {"TaskApiAddress", options::Ignored<Options>()},
      {"TaskApiVersion", options::Ignored<Options>()},
  };
  return table;
}

}  // namespace

Options DefaultOptions() {
  Options options;
  // Read once at start-up, before anyone could change the environment.
  const char* path = std::getenv("PATH");
  if (path != nullptr && *path != '\0') {
    options.path = path;
  }
  return options;
}

Result<Options> ParseOptions(const std::string& text, Options base,
                             std::vector<std::string>* unknown) {
  return options::Read(text, std::move(base), Table(), "runc", unknown);
}

std::string HybridRemedy(const cgroup::NodeCgroups& node) {
  const std::string controllers = node.unclaimed.empty() ? "NAME" : node.unclaimed;
  const std::string first = controllers.substr(0, controllers.find(' '));
  return Format(
      "give the controllers that only the v2 tree has ({}) a v1 hierarchy each (mkdir "
      "/sys/fs/cgroup/{} && mount -t cgroup -o {} cgroup /sys/fs/cgroup/{}), boot with cgroup v2 "
      "alone, or install runc and set BinaryName to it",
      controllers, first, first, first);
}

std::string WhyItCannotRun(const std::string& binary, const cgroup::NodeCgroups& node) {
  const std::string_view name = std::string_view(binary).substr(binary.rfind('/') + 1);
  if (node.unclaimed.empty() || (name != "crun" && !name.starts_with("crun-"))) {
    return {};
  }
  return Format("'{}' refuses this node's cgroups, v2 beside v1: {}", binary, HybridRemedy(node));
}

Result<std::string> FindRuntime(const Options& options, const cgroup::NodeCgroups& node) {
  const std::string& name = options.binary_name;
  if (name.empty()) {
    std::string refused;
    for (const std::string_view known : {"crun", "runc"}) {
      auto found = FindInPath(options.path, known);
      if (found && WhyItCannotRun(*found, node).empty()) {
        return found;
      }
      refused = found ? *found : refused;
    }
    if (!refused.empty()) {
      return refused;
    }
    return Fail(Code::kFailedPrecondition,
                "find an OCI runtime: neither 'crun' nor 'runc' is in PATH; install the package "
                "crun or runc, or set BinaryName");
  }
  if (name[0] == '/') {
    if (IsExecutable(name)) {
      return name;
    }
    return Fail(
        Code::kFailedPrecondition,
        "find the OCI runtime '{}' (option 'BinaryName'): no such executable file; install it or "
        "correct BinaryName",
        name);
  }
  if (auto found = FindInPath(options.path, name)) {
    return found;
  }
  return Fail(
      Code::kFailedPrecondition,
      "find the OCI runtime '{}' (option 'BinaryName'): not in PATH; install the package {} or "
      "correct BinaryName",
      name, name);
}

Result<std::string> FindCriu(const Options& options) {
  if (!options.criu_path.empty()) {
    if (IsExecutable(options.criu_path)) {
      return options.criu_path;
    }
    return Fail(Code::kFailedPrecondition,
                "find criu '{}' (CriuPath): no such executable file; install the package criu or "
                "correct CriuPath",
                options.criu_path);
  }
  if (auto found = FindInPath(options.path, "criu")) {
    return found;
  }
  return Fail(Code::kFailedPrecondition,
              "find criu: not in PATH; install the package criu or set CriuPath");
}

std::string SearchPath(const Options& options) {
  const size_t slash = options.criu_path.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return options.path;
  }
  return options.criu_path.substr(0, slash) + ":" + options.path;
}

}  // namespace gantry::runc
