// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/options.h"

#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::runc {
namespace {

using nlohmann::json;
using Setter = std::function<Status(Options&, const std::string& key, const json&)>;

std::unexpected<Error> WrongType(const std::string& key, std::string_view wanted,
                                 const json& value) {
  return Fail(Code::kInvalidArgument, "check option '{}': must be {}, is {}", key, wanted,
              value.type_name());
}

Setter Text(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const json& value) -> Status {
    if (!value.is_string()) {
      return WrongType(key, "a string", value);
    }
    options.*field = value.get_ref<const std::string&>();
    return {};
  };
}

/// Empty or absolute.
Setter Path(std::string Options::* field) {
  return [field](Options& options, const std::string& key, const json& value) -> Status {
    GANTRY_CHECK_OK(Text(field)(options, key, value));
    const std::string& text = options.*field;
    if (!text.empty() && text[0] != '/') {
      return Fail(Code::kInvalidArgument, "check option '{}': '{}' is no absolute path", key, text);
    }
    return {};
  };
}

Setter Flag(bool Options::* field) {
  return [field](Options& options, const std::string& key, const json& value) -> Status {
    if (!value.is_boolean()) {
      return WrongType(key, "true or false", value);
    }
    options.*field = value.get<bool>();
    return {};
  };
}

Result<uint32_t> Number(const std::string& key, const json& value) {
  if (!value.is_number_integer()) {
    return WrongType(key, "a whole number", value);
  }
  const auto number = value.get<int64_t>();
  if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
    return Fail(Code::kInvalidArgument, "check option '{}': {} is out of range", key, number);
  }
  return static_cast<uint32_t>(number);
}

Setter Id(uint32_t Options::* field) {
  return [field](Options& options, const std::string& key, const json& value) -> Status {
    GANTRY_TRY(options.*field, Number(key, value));
    return {};
  };
}

template <class T>
Setter Duration(T Options::* field) {
  return [field](Options& options, const std::string& key, const json& value) -> Status {
    GANTRY_TRY(const uint32_t ms, Number(key, value));
    if (ms == 0) {
      return Fail(Code::kInvalidArgument, "check option '{}': must be above 0", key);
    }
    options.*field = std::chrono::milliseconds(ms);
    return {};
  };
}

Status SetRoot(Options& options, const std::string& key, const json& value) {
  Options changed = options;
  GANTRY_CHECK_OK(Path(&Options::root)(changed, key, value));
  if (!changed.root.empty()) {
    options.root = changed.root;
  }
  return {};
}

Status SetBinary(Options& options, const std::string& key, const json& value) {
  GANTRY_CHECK_OK(Text(&Options::binary_name)(options, key, value));
  const std::string& name = options.binary_name;
  if (!name.empty() && name[0] != '/' && name.contains('/')) {
    return Fail(Code::kInvalidArgument,
                "check option '{}': '{}' is neither an absolute path nor a plain name", key, name);
  }
  return {};
}

Status Accept(Options&, const std::string&, const json&) { return {}; }

const std::map<std::string, Setter, std::less<>>& Setters() {
  static const std::map<std::string, Setter, std::less<>> setters = {
      {"BinaryName", SetBinary},
      {"Root", SetRoot},
      {"CriuPath", Path(&Options::criu_path)},
      {"CriuImagePath", Path(&Options::criu_image_path)},
      {"CriuWorkPath", Path(&Options::criu_work_path)},
      {"ShimCgroup", Text(&Options::shim_cgroup)},
      {"NoPivotRoot", Flag(&Options::no_pivot_root)},
      {"NoNewKeyring", Flag(&Options::no_new_keyring)},
      {"SystemdCgroup", Flag(&Options::systemd_cgroup)},
      {"SealBinary", Flag(&Options::seal_binary)},
      {"IoUid", Id(&Options::io_uid)},
      {"IoGid", Id(&Options::io_gid)},
      {"TimeoutMs", Duration(&Options::timeout)},
      {"DeleteTimeoutMs", Duration(&Options::delete_timeout)},
      // Parts of the runc message that the core itself answers.
      {"TaskApiAddress", Accept},
      {"TaskApiVersion", Accept},
  };
  return setters;
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
  if (text.empty()) {
    return base;
  }
  const json parsed = ReadJson(text);
  if (parsed.is_null()) {
    return base;
  }
  if (!parsed.is_object()) {
    return Fail(Code::kInvalidArgument, "check the options of the runc backend: no JSON object");
  }
  for (const auto& [key, value] : parsed.items()) {
    const auto setter = Setters().find(key);
    if (setter != Setters().end()) {
      GANTRY_CHECK_OK(setter->second(base, key, value));
    } else if (unknown != nullptr) {
      unknown->push_back(key.substr(0, 80));
    } else {
      return Fail(Code::kInvalidArgument, "check option '{}': the runc backend has no such key",
                  key.substr(0, 80));
    }
  }
  return base;
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
