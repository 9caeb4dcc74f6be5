// SPDX-License-Identifier: Apache-2.0
//
// The command line as Go's flag package reads it. A flag that is not known is taken with its value
// and left, so that a newer containerd can add some. `start` refuses ids that are none; `delete`
// takes any, as it has to clean up after whatever is there.
#include "core/shim/arguments.h"

#include <optional>
#include <string_view>

#include <gantry/ids.h>

namespace gantry::shim {
namespace {

bool* BoolFlag(Arguments& out, std::string_view name) {
  if (name == "debug") {
    return &out.debug;
  }
  if (name == "v" || name == "version") {
    return &out.version;
  }
  return name == "info" ? &out.info : nullptr;
}

/// Where a flag's value goes; `ignored` for a flag that is not ours to know.
std::string* TextFlag(Arguments& out, std::string_view name, std::string& ignored) {
  if (name == "namespace") {
    return &out.ns;
  }
  if (name == "id") {
    return &out.id;
  }
  if (name == "address") {
    return &out.address;
  }
  if (name == "publish-binary") {
    return &out.publish_binary;
  }
  return name == "bundle" ? &out.bundle : &ignored;
}

Result<bool> ParseBool(std::string_view name, std::string_view value) {
  if (value == "true" || value == "1" || value == "t" || value == "T" || value == "TRUE") {
    return true;
  }
  if (value == "false" || value == "0" || value == "f" || value == "F" || value == "FALSE") {
    return false;
  }
  return Fail(Code::kInvalidArgument, "read flag -{}: '{}' is no boolean", name, value);
}

Status CheckAction(const Arguments& out) {
  if (out.version || out.info) {
    return {};
  }
  if (out.action != "start" && out.action != "delete") {
    return Fail(Code::kInvalidArgument,
                "run action '{}': not known, it is 'start' or 'delete' (containerd calls this)",
                out.action);
  }
  if (out.ns.empty() || out.id.empty()) {
    return Fail(Code::kInvalidArgument, "run action '{}': -namespace and -id are needed",
                out.action);
  }
  // `delete` takes any, for it must clean up after whatever there is.
  for (const std::string& name : {out.ns, out.id}) {
    if (out.action == "start" && !IsValidId(name)) {
      return Fail(Code::kInvalidArgument,
                  "run action 'start': '{}' is not 1 to 76 letters, digits, '.', '_', '-'",
                  name.substr(0, 80));
    }
  }
  return {};
}

}  // namespace

std::string HandlerOf(const std::string& program) {
  constexpr std::string_view kPrefix = "containerd-shim-gantry-";
  const std::string name = program.substr(program.rfind('/') + 1);
  const size_t version = name.rfind("-v");
  if (!name.starts_with(kPrefix) || version == std::string::npos || version < kPrefix.size()) {
    return "";
  }
  return name.substr(kPrefix.size(), version - kPrefix.size());
}

Result<Arguments> ParseArguments(std::span<const std::string> all) {
  Arguments out;
  out.handler = all.empty() ? "" : HandlerOf(all.front());
  size_t i = 1;
  for (; i < all.size() && all[i].size() > 1 && all[i].starts_with('-'); ++i) {
    if (all[i] == "--") {
      ++i;
      break;
    }
    const std::string_view flag = std::string_view(all[i]).substr(all[i][1] == '-' ? 2 : 1);
    const size_t equals = flag.find('=');
    const std::string_view name = flag.substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) {
      value = flag.substr(equals + 1);
    }
    if (bool* const target = BoolFlag(out, name)) {
      GANTRY_TRY(*target, ParseBool(name, value.value_or("true")));
      continue;
    }
    if (!value && i + 1 == all.size()) {
      return Fail(Code::kInvalidArgument, "read flag -{}: it has no value", name);
    }
    std::string ignored;
    *TextFlag(out, name, ignored) = value ? std::string(*value) : all[++i];
  }
  out.action = i < all.size() ? all[i] : "";
  GANTRY_CHECK_OK(CheckAction(out));
  return out;
}

}  // namespace gantry::shim
