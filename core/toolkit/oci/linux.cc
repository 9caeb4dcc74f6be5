// SPDX-License-Identifier: Apache-2.0
//
// `linux` of config.json. Source: OCI runtime-spec 1.2, config-linux.md.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/toolkit/oci/sections.h"

namespace gantry::oci {
namespace {

Status ReadNamespaces(const Json& list, std::vector<LinuxNamespace>& out) {
  constexpr std::string_view kTypes[] = {"pid", "network", "mount",  "ipc",
                                         "uts", "user",    "cgroup", "time"};
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    LinuxNamespace space;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(item["type"].Read(space.type));
    GANTRY_CHECK_OK(item["path"].Read(space.path));
    if (!std::ranges::contains(kTypes, space.type)) {
      return item["type"].WrongValue("not a kind of namespace");
    }
    if (!space.path.empty() && !space.path.starts_with('/')) {
      return item["path"].WrongValue("not an absolute path");
    }
    if (std::ranges::contains(out, space.type, &LinuxNamespace::type)) {
      return item["type"].WrongValue("listed twice");
    }
    out.push_back(std::move(space));
  }
  return {};
}

Status ReadDevice(const Json& item, Device& out) {
  // Of a file: what is not its type.
  constexpr uint32_t kModeBits = 07777;
  std::string type;
  GANTRY_CHECK_OK(item.CheckObject());
  GANTRY_CHECK_OK(item["type"].Read(type));
  if (type.size() != 1 || !std::string_view("cubp").contains(type.front())) {
    return item["type"].WrongValue("not a kind of device");
  }
  out.type = type.front();
  GANTRY_CHECK_OK(item["path"].Read(out.path));
  if (!out.path.starts_with('/')) {
    return item["path"].WrongValue("not an absolute path");
  }
  GANTRY_CHECK_OK(item["major"].Read(out.major));
  GANTRY_CHECK_OK(item["minor"].Read(out.minor));
  std::optional<uint32_t> mode;
  GANTRY_CHECK_OK(item["fileMode"].Read(mode));
  out.mode = mode ? *mode & kModeBits : out.mode;
  GANTRY_CHECK_OK(item["uid"].Read(out.uid));
  return item["gid"].Read(out.gid);
}

Status ReadDevices(const Json& list, std::vector<Device>& out) {
  GANTRY_TRY(const auto items, list.Items());
  out.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    GANTRY_CHECK_OK(ReadDevice(items[i], out[i]));
  }
  return {};
}

Status ReadPropagation(const Json& word, std::string& out) {
  constexpr std::string_view kWords[] = {"shared",  "slave",  "private",  "unbindable",
                                         "rshared", "rslave", "rprivate", "runbindable"};
  GANTRY_CHECK_OK(word.Read(out));
  if (!out.empty() && !std::ranges::contains(kWords, out)) {
    return word.WrongValue("not a propagation of mounts");
  }
  return {};
}

Status ReadPersonality(const Json& part, std::optional<Personality>& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  if (part.absent()) {
    return {};
  }
  Personality personality;
  GANTRY_CHECK_OK(part["domain"].Read(personality.domain));
  if (personality.domain != "LINUX" && personality.domain != "LINUX32") {
    return part["domain"].WrongValue("not LINUX or LINUX32");
  }
  out = std::move(personality);
  return {};
}

Status ReadTimeOffsets(const Json& part, std::map<std::string, TimeOffset>& out) {
  constexpr uint32_t kNanosecondsOfSecond = 1'000'000'000;
  GANTRY_TRY(const auto clocks, part.Members());
  for (const auto& [clock, offset] : clocks) {
    if (clock != "monotonic" && clock != "boottime") {
      return offset.WrongValue("not a clock of a time namespace");
    }
    TimeOffset& time = out[clock];
    GANTRY_CHECK_OK(offset.CheckObject());
    GANTRY_CHECK_OK(offset["secs"].Read(time.seconds));
    GANTRY_CHECK_OK(offset["nanosecs"].Read(time.nanoseconds));
    if (time.nanoseconds >= kNanosecondsOfSecond) {
      return offset["nanosecs"].WrongValue("a second or more");
    }
  }
  return {};
}

Status ReadSysctl(const Json& part, std::map<std::string, std::string>& out) {
  GANTRY_CHECK_OK(part.Read(out));
  if (out.contains("")) {
    return part[""].WrongValue("no name");
  }
  return {};
}

}  // namespace

Status ReadIdMappings(const Json& list, std::vector<IdMapping>& out) {
  constexpr uint64_t kIds = uint64_t{std::numeric_limits<uint32_t>::max()} + 1;
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    IdMapping mapping;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(item["containerID"].Read(mapping.container_id));
    GANTRY_CHECK_OK(item["hostID"].Read(mapping.host_id));
    GANTRY_CHECK_OK(item["size"].Read(mapping.length));
    if (mapping.length == 0) {
      return item["size"].WrongValue("no ids");
    }
    if (uint64_t{mapping.container_id} + mapping.length > kIds ||
        uint64_t{mapping.host_id} + mapping.length > kIds) {
      return item.WrongValue("ids above 4294967295");
    }
    out.push_back(mapping);
  }
  return {};
}

Status ReadLinux(const Json& part, Spec& out) {
  LinuxSpec& to = out.linux_spec;
  GANTRY_CHECK_OK(part.CheckObject());
  GANTRY_CHECK_OK(ReadNamespaces(part["namespaces"], to.namespaces));
  GANTRY_CHECK_OK(ReadIdMappings(part["uidMappings"], to.uid_mappings));
  GANTRY_CHECK_OK(ReadIdMappings(part["gidMappings"], to.gid_mappings));
  GANTRY_CHECK_OK(ReadDevices(part["devices"], to.devices));
  GANTRY_CHECK_OK(part["maskedPaths"].Read(to.masked_paths));
  GANTRY_CHECK_OK(part["readonlyPaths"].Read(to.readonly_paths));
  GANTRY_CHECK_OK(ReadSysctl(part["sysctl"], to.sysctl));
  GANTRY_CHECK_OK(ReadSeccomp(part["seccomp"], to.seccomp));
  GANTRY_CHECK_OK(ReadPropagation(part["rootfsPropagation"], to.rootfs_propagation));
  GANTRY_CHECK_OK(part["mountLabel"].Read(to.mount_label));
  GANTRY_CHECK_OK(ReadPersonality(part["personality"], to.personality));
  GANTRY_CHECK_OK(ReadTimeOffsets(part["timeOffsets"], to.time_offsets));
  GANTRY_CHECK_OK(part["cgroupsPath"].Read(out.cgroups_path));
  GANTRY_CHECK_OK(part["resources"].CheckObject());
  out.resources_json = part["resources"].Text();
  return {};
}

}  // namespace gantry::oci
