// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/guest_spec.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/oci/resources.h>

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

constexpr const char* kElsewhere =
    "run it with a handler whose containers are the node's processes";

std::unexpected<Error> Refused(std::string_view what, std::string_view instead) {
  return Fail(Code::kFailedPrecondition, "{}: not in a virtual machine: {}", what, instead);
}

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> ObjectIn(const std::string& text, std::string_view what) {
  GANTRY_TRY(Json object, ParseJson(text, what, kSpecJson));
  if (!object.is_object()) {
    return Fail(Code::kInvalidArgument, "read {}: no JSON object", what);
  }
  return object;
}

/// The member, an object; null where it is something else.
Json* ObjectOf(Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

void DropLabels(Json& process) {
  process.erase("apparmorProfile");
  process.erase("selinuxLabel");
}

/// Of hooks, those that are programs of the container's; the node's were run there. Whether there
/// are some.
bool KeepStartHooks(Json& document) {
  constexpr const char* kStart = "startContainer";
  const Json* const hooks = ObjectOf(document, "hooks");
  Json start = hooks != nullptr && hooks->contains(kStart) ? (*hooks)[kStart] : Json();
  document.erase("hooks");
  if (!start.is_array() || start.empty()) {
    return false;
  }
  document["hooks"] = {{kStart, std::move(start)}};
  return true;
}

/// The guest has as many CPUs as it was given, and one node of memory.
void DropPlaces(Json& resources) {
  if (Json* const cpu = ObjectOf(resources, "cpu")) {
    cpu->erase("cpus");
    cpu->erase("mems");
  }
  if (Json* const unified = ObjectOf(resources, "unified")) {
    for (const char* const file : {"cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition"}) {
      unified->erase(file);
    }
  }
}

/// Those of gantry's own, which are for the agent; others are for the host.
void KeepOwnAnnotations(Json& document) {
  constexpr std::string_view kOwn = "dev.gantry.vmm.";
  Json kept = Json::object();
  if (const Json* const all = ObjectOf(document, "annotations")) {
    for (const auto& [key, value] : all->items()) {
      if (key.starts_with(kOwn)) {
        kept[key] = value;
      }
    }
  }
  document["annotations"] = std::move(kept);
}

bool IsNew(const Json& one) {
  const auto path = one.find("path");
  return path == one.end() || path->is_null() || (path->is_string() && *path == "");
}

/// Those that are new stay, but for the network, which is the pod's. Gives whether the one that
/// has the host's name is among them.
bool KeepNewNamespaces(Json& linux_part) {
  Json kept = Json::array();
  bool has_own_name = false;
  const auto all = linux_part.find("namespaces");
  if (all != linux_part.end() && all->is_array()) {
    for (const Json& one : *all) {
      const Json type = one.is_object() ? one.value("type", Json()) : Json();
      // A mount namespace is the container's own in any case.
      if (type == "mount") {
        kept.push_back({{"type", "mount"}});
      } else if (type.is_string() && type != "network" && IsNew(one)) {
        kept.push_back(one);
        has_own_name = has_own_name || type == "uts";
      }
    }
  }
  linux_part["namespaces"] = std::move(kept);
  return has_own_name;
}

/// Drivers of the kernel's own that a guest has by the same numbers: memory (1), terminals (4, 5),
/// and those of misc (10), of which it may lack one; and block devices, which it is given. Source:
/// Linux, admin-guide/devices.txt.
bool CanHave(const oci::Device& device) {
  constexpr auto kMajors = std::to_array<uint32_t>({1, 4, 5, 10});
  return device.type == 'p' || device.type == 'b' || std::ranges::contains(kMajors, device.major);
}

Status CheckDevices(const std::vector<oci::Device>& devices) {
  const auto refused = std::ranges::find_if_not(devices, CanHave);
  if (refused == devices.end()) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "device '{}': {}:{} is a device of the node, which a VM has not; leave it out (for "
              "privileged pods: 'privileged_without_host_devices' of containerd)",
              refused->path, refused->major, refused->minor);
}

}  // namespace

Status CheckSpec(const oci::Spec& spec, bool further) {
  if (spec.FindNamespace("network") == nullptr) {
    return Refused("the node's network (hostNetwork)", kElsewhere);
  }
  if (spec.FindNamespace("user") != nullptr) {
    return Refused("a user namespace (hostUsers: false)",
                   "it has a kernel of its own; leave hostUsers out");
  }
  if (spec.linux_spec.seccomp && !spec.linux_spec.seccomp->listener_path.empty()) {
    return Refused("'linux.seccomp.listenerPath'",
                   "its filter cannot ask a program of the node; use a profile without it");
  }
  GANTRY_CHECK_OK(CheckDevices(spec.linux_spec.devices));
  GANTRY_TRY(const oci::Json document, oci::Json::Parse(spec.json, "config.json"));
  if (!document["linux"]["intelRdt"].absent()) {
    return Refused("'linux.intelRdt'", kElsewhere);
  }
  if (further && !spec.linux_spec.sysctl.empty()) {
    return Fail(Code::kFailedPrecondition,
                "'linux.sysctl' ({}): the pod's containers share one kernel: set it for the pod",
                spec.linux_spec.sysctl.begin()->first);
  }
  return {};
}

Result<std::string> MakeGuestSpec(const std::string& spec_json, bool terminal) {
  GANTRY_TRY(Json document, ObjectIn(spec_json, "config.json"));
  // They are a part of the state that a hook reads.
  if (!KeepStartHooks(document)) {
    KeepOwnAnnotations(document);
  }
  if (Json* const process = ObjectOf(document, "process")) {
    DropLabels(*process);
    process->erase("terminal");
    if (terminal) {
      (*process)["terminal"] = true;
    }
  }
  Json& linux_part = document["linux"];
  if (!linux_part.is_object()) {
    linux_part = Json::object();
  }
  for (const char* const name : {"cgroupsPath", "mountLabel", "sysctl"}) {
    linux_part.erase(name);
  }
  if (!KeepNewNamespaces(linux_part)) {
    document.erase("hostname");
    document.erase("domainname");
  }
  if (Json* const resources = ObjectOf(linux_part, "resources")) {
    DropPlaces(*resources);
  }
  return TextOf(document);
}

Result<std::string> MakeGuestProcess(const std::string& process_json) {
  GANTRY_TRY(Json process, ObjectIn(process_json, "exec spec"));
  DropLabels(process);
  return TextOf(process);
}

Result<std::string> MakeGuestResources(const std::string& resources_json) {
  if (resources_json.empty()) {
    return std::string("{}");
  }
  GANTRY_TRY(Json resources, ObjectIn(resources_json, "resources"));
  DropPlaces(resources);
  return TextOf(resources);
}

Result<Limits> LimitsIn(const std::string& resources_json, const Limits& before) {
  if (resources_json.empty()) {
    return before;
  }
  GANTRY_TRY(const cgroup::CgroupResources resources,
             oci::ParseResources(resources_json, "linux.resources"));
  return Limits{.cpu_quota = resources.cpu.quota_us.value_or(before.cpu_quota),
                .cpu_period = resources.cpu.period_us.value_or(before.cpu_period),
                .memory = resources.memory.limit_bytes.value_or(before.memory)};
}

}  // namespace gantry::vmm
