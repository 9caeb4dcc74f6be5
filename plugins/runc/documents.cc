// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/documents.h"

#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::runc {
namespace {

using nlohmann::json;

constexpr size_t kMaxStateBytes = 16U << 20;

/// The member `key` of an object; null when there is none.
const json& Member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) {
    return none;
  }
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string TextOf(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}

uint64_t NumberOf(const json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

HostPid PidOf(const json& value) {
  const uint64_t number = NumberOf(value);
  if (number > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  return {static_cast<int32_t>(number)};
}

bool HasElements(const json& value) { return value.is_array() && !value.empty(); }

bool HasPrivatePids(const json& linux_part) {
  const json& namespaces = Member(linux_part, "namespaces");
  if (!namespaces.is_array()) {
    return false;
  }
  for (const json& entry : namespaces) {
    if (TextOf(Member(entry, "type")) == "pid") {
      return TextOf(Member(entry, "path")).empty();
    }
  }
  return false;
}

void ReadCrun(const json& status, RuntimeState& state) {
  state.kind = StateKind::kCrun;
  state.pid = PidOf(Member(status, "pid"));
  state.start_time = NumberOf(Member(status, "process-start-time"));
  state.cgroup_path = TextOf(Member(status, "cgroup-path"));
  const json& systemd = Member(status, "systemd-cgroup");
  state.needs_runtime = (systemd.is_boolean() && systemd.get<bool>()) ||
                        !TextOf(Member(status, "scope")).empty() ||
                        !TextOf(Member(status, "intelrdt")).empty();
}

void ReadRunc(const json& document, RuntimeState& state) {
  const json& paths = Member(document, "cgroup_paths");
  if (!paths.is_object() || !document.contains("init_process_pid")) {
    return;
  }
  state.kind = StateKind::kRunc;
  state.pid = PidOf(Member(document, "init_process_pid"));
  state.start_time = NumberOf(Member(document, "init_process_start"));
  for (const auto& [controller, path] : paths.items()) {
    if (path.is_string()) {
      state.cgroup_directories.push_back(path.get_ref<const std::string&>());
    }
  }
  const json& systemd = Member(Member(Member(document, "config"), "cgroups"), "Systemd");
  state.needs_runtime = (systemd.is_boolean() && systemd.get<bool>()) ||
                        !TextOf(Member(document, "intel_rdt_path")).empty();
}

json ReadDocument(const std::string& path) {
  const auto text = ReadFile(path, kMaxStateBytes);
  return text ? ReadJson(*text, kSpecJson) : json();
}

/// One line of a log: whether it tells an error, and its text.
struct LogLine {
  bool error = false;
  std::string text;
};

LogLine ReadLogLine(std::string_view line) {
  const json entry = ReadJson(line);
  const std::string level = TextOf(Member(entry, "level"));
  return {level == "error" || level == "fatal" || level == "panic", TextOf(Member(entry, "msg"))};
}

bool IsIdmapped(const json& mount) {
  bool asked =
      HasElements(Member(mount, "uidMappings")) || HasElements(Member(mount, "gidMappings"));
  if (const json& options = Member(mount, "options"); options.is_array()) {
    for (const json& option : options) {
      asked = asked || option == "idmap" || option == "ridmap";
    }
  }
  return asked;
}

std::string FirstIdmapped(const json& mounts) {
  if (mounts.is_array()) {
    for (const json& mount : mounts) {
      if (IsIdmapped(mount)) {
        return TextOf(Member(mount, "destination"));
      }
    }
  }
  return {};
}

}  // namespace

Result<SpecFacts> ReadSpec(const std::string& spec_json) {
  const json spec = ReadJson(spec_json, kSpecJson);
  if (!spec.is_object()) {
    return Fail(Code::kInvalidArgument, "read config.json: no JSON object");
  }
  const json& hooks = Member(spec, "hooks");
  const json& linux_part = Member(spec, "linux");
  SpecFacts facts;
  facts.has_poststart = HasElements(Member(hooks, "poststart"));
  facts.has_poststop = HasElements(Member(hooks, "poststop"));
  facts.private_pids = HasPrivatePids(linux_part);
  facts.cgroups_text = TextOf(Member(linux_part, "cgroupsPath"));
  facts.cgroups_path = facts.cgroups_text;
  if (!facts.cgroups_path.starts_with('/')) {
    // Relative to wherever the runtime runs, or systemd's `slice:prefix:name`.
    facts.cgroups_path.clear();
  }
  facts.idmapped_mount = FirstIdmapped(Member(spec, "mounts"));
  return facts;
}

bool NamesScope(std::string_view cgroups_path) {
  const size_t first = cgroups_path.find(':');
  const size_t second = cgroups_path.find(':', first == cgroups_path.npos ? first : first + 1);
  if (second == cgroups_path.npos || cgroups_path.contains('/') ||
      cgroups_path.find(':', second + 1) != cgroups_path.npos) {
    return false;
  }
  constexpr std::string_view kSliceEnd = ".slice";
  const std::string_view slice = cgroups_path.substr(0, first);
  return slice.size() > kSliceEnd.size() && slice.ends_with(kSliceEnd) &&
         second + 1 < cgroups_path.size();
}

bool PromisesIdmappedMounts(const std::string& features_json) {
  const json features = ReadJson(features_json);
  const json& mounts = Member(Member(features, "linux"), "mountExtensions");
  return Member(Member(mounts, "idmap"), "enabled") == true;
}

RuntimeState ReadState(const std::string& directory) {
  RuntimeState state;
  if (!Exists(directory)) {
    return state;
  }
  state.kind = StateKind::kUnknown;
  if (const json status = ReadDocument(directory + "/status"); status.contains("cgroup-path")) {
    ReadCrun(status, state);
  } else if (const json document = ReadDocument(directory + "/state.json"); document.is_object()) {
    ReadRunc(document, state);
  }
  if (state.pid && state.start_time == 0) {
    // A pid alone may be anybody's by now. The runtime itself may have other means.
    state = RuntimeState();
    state.kind = StateKind::kUnknown;
  }
  return state;
}

std::string LastLogError(const std::string& log) {
  std::string last;
  std::string_view rest = log;
  while (!rest.empty()) {
    const size_t start = rest.find_last_of('\n', rest.size() - 1);
    const std::string_view line = start == std::string_view::npos ? rest : rest.substr(start + 1);
    rest = start == std::string_view::npos ? std::string_view() : rest.substr(0, start);
    LogLine entry = ReadLogLine(line);
    if (entry.error && !entry.text.empty()) {
      return std::move(entry.text);
    }
    if (last.empty()) {
      last = std::move(entry.text);
    }
  }
  return last;
}

std::string FirstCriuError(const std::string& log) {
  constexpr std::string_view kError = "Error (";
  for (size_t at = log.find(kError); at != std::string::npos; at = log.find(kError, at + 1)) {
    const std::string line = log.substr(at, log.find('\n', at) - at);
    const size_t text = line.find("): ");
    // It goes on without more descriptors.
    if (text != std::string::npos && !line.contains("RLIMIT_NOFILE")) {
      return line.substr(text + 3);
    }
  }
  return {};
}

}  // namespace gantry::runc
