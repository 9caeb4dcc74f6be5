// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/spec.h"

#include <limits.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/number.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr const char* kCgroupMount = "/sys/fs/cgroup";

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The member of that name if it has the type, else null.
const Json* Member(const Json& object, const char* name, Json::value_t type) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->type() == type ? &*found : nullptr;
}

std::string Text(const Json& object, const char* name) {
  const Json* text = Member(object, name, Json::value_t::string);
  return text == nullptr ? std::string() : text->get<std::string>();
}

bool Truth(const Json& object, const char* name) {
  const Json* value = Member(object, name, Json::value_t::boolean);
  return value != nullptr && value->get<bool>();
}

const Json& Elements(const Json& object, const char* name) {
  static const Json none = Json::array();
  const Json* array = Member(object, name, Json::value_t::array);
  return array == nullptr ? none : *array;
}

bool HasOption(const Json& mount, std::string_view option) {
  return std::ranges::any_of(Elements(mount, "options"),
                             [&](const Json& one) { return one == option; });
}

/// Source: runsc/specutils, IsGoferMount.
bool IsBind(const Json& mount) {
  return (Text(mount, "type") == "bind" || HasOption(mount, "bind") || HasOption(mount, "rbind")) &&
         !Text(mount, "source").empty();
}

std::string Absolute(const std::string& path, const std::string& base) {
  return path.starts_with('/') ? path : base + "/" + path;
}

/// What a new UTS namespace of the kernel's begins with; a sentry's begins with nothing.
std::string NodeName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool IsOnAReadOnlyFileSystem(const std::string& path) {
  struct statvfs info{};
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

/// Of the mount of `source`. What cannot be in the mount itself is in the pod's memory.
MountConf::Upper UpperOf(Overlay::Medium medium, const std::string& source) {
  if (medium == Overlay::Medium::kSelf && IsOnAReadOnlyFileSystem(source)) {
    return MountConf::Upper::kMemory;
  }
  switch (medium) {
    case Overlay::Medium::kNone:
      return MountConf::Upper::kNone;
    case Overlay::Medium::kSelf:
      return MountConf::Upper::kSelf;
    case Overlay::Medium::kMemory:
      return MountConf::Upper::kMemory;
    case Overlay::Medium::kDirectory:
      return MountConf::Upper::kAnon;
  }
  return MountConf::Upper::kNone;
}

/// An image instead of the root's directory. Source: runsc/boot/gofer_conf.go, RootfsHint.
Status UseImage(const Annotations& annotations, FileMount& root) {
  const auto text = [&](const char* name) {
    const auto found = annotations.find(std::string("dev.gvisor.spec.rootfs.") + name);
    return found == annotations.end() ? std::string() : found->second;
  };
  const std::string type = text("type");
  if (type.empty()) {
    return {};
  }
  const std::string source = text("source");
  if (type != "erofs" || !source.starts_with('/')) {
    return Fail(Code::kInvalidArgument,
                "check annotation 'dev.gvisor.spec.rootfs.type': '{}' of '{}': must be erofs, of "
                "an absolute path",
                type, source);
  }
  const std::string overlay = text("overlay");
  if (!overlay.empty() && overlay != "memory" && overlay != "none") {
    return Fail(Code::kInvalidArgument,
                "check annotation 'dev.gvisor.spec.rootfs.overlay': '{}': must be memory or none",
                overlay);
  }
  root.source = source;
  root.conf = {MountConf::Lower::kErofs,
               overlay == "none" ? MountConf::Upper::kNone : MountConf::Upper::kMemory};
  return {};
}

std::vector<IdMapping> Mappings(const Json& object, const char* name) {
  std::vector<IdMapping> mappings;
  for (const Json& one : Elements(object, name)) {
    const auto number = [&](const char* field) {
      const Json* value = Member(one, field, Json::value_t::number_unsigned);
      return value == nullptr ? 0 : value->get<uint32_t>();
    };
    mappings.push_back({number("hostID"), number("containerID"), number("size")});
  }
  return mappings;
}

class Maker {
 public:
  Maker(const SpecRequest& request, const Overlay& overlay)
      : request_(request), overlay_(overlay) {}

  Result<Spec> Make() {
    document_ = ReadJson(request_.json, kSpecJson);
    if (!document_.is_object()) {
      return Fail(Code::kInvalidArgument, "read config.json: no JSON object");
    }
    ReadAnnotations();
    GANTRY_CHECK_OK(FixVolumes());
    FixProcess();
    GANTRY_CHECK_OK(FixRoot());
    FixNamespaces();
    FixSeccomp();
    GANTRY_CHECK_OK(ReadSysctls());
    spec_.uids = Mappings(document_["linux"], "uidMappings");
    spec_.gids = Mappings(document_["linux"], "gidMappings");
    FixMounts();
    spec_.json = JsonText(document_);
    return std::move(spec_);
  }

 private:
  void ReadAnnotations() {
    const Json* all = Member(document_, "annotations", Json::value_t::object);
    if (all == nullptr) {
      return;
    }
    for (const auto& [key, value] : all->items()) {
      if (value.is_string()) {
        spec_.annotations[key] = value.get<std::string>();
      }
    }
  }

  /// The sentry knows them by its root's annotations.
  Status FixVolumes() {
    if (request_.volumes) {
      spec_.volumes = *request_.volumes;
    } else if (!IsFurther()) {
      GANTRY_TRY(spec_.volumes, FindVolumes(spec_.annotations));
      AddSharedMemory();
    }
    if (!IsFurther() && !spec_.volumes.empty()) {
      spec_.annotations = WithVolumes(std::move(spec_.annotations), spec_.volumes);
      document_["annotations"] = spec_.annotations;
    }
    return {};
  }

  bool IsFurther() const { return request_.kind == ContainerKind::kFurther; }

  void AddSharedMemory() {
    if (request_.kind != ContainerKind::kRoot) {
      return;
    }
    for (const Json& mount : Elements(document_, "mounts")) {
      if (Text(mount, "destination") == kSharedMemory && IsBind(mount)) {
        spec_.volumes.push_back(SharedMemory(Absolute(Text(mount, "source"), request_.bundle)));
        return;
      }
    }
  }

  /// A sentry has no labels, and refuses a spec that has one.
  void FixProcess() {
    const auto process = document_.find("process");
    if (process == document_.end() || !process->is_object()) {
      return;
    }
    process->erase("selinuxLabel");
    const auto score = process->find("oomScoreAdj");
    if (score != process->end() && score->is_number_integer()) {
      spec_.oom_score_adj = score->get<int>();
    }
  }

  Status FixRoot() {
    Json& root = document_["root"];
    if (!root.is_object()) {
      root = Json::object();
    }
    root["path"] = request_.rootfs;
    if (!IsFurther() && Text(document_, "hostname").empty()) {
      document_["hostname"] = NodeName();
    }
    FileMount mount{.conf = {}, .source = request_.rootfs};
    mount.conf.upper = Truth(root, "readonly") ? MountConf::Upper::kNone
                                               : UpperOf(overlay_.medium, request_.rootfs);
    if (request_.kind == ContainerKind::kOwnRoot) {
      mount.conf = {MountConf::Lower::kErofs, MountConf::Upper::kNone};
    } else {
      GANTRY_CHECK_OK(UseImage(spec_.annotations, mount));
    }
    spec_.mounts.push_back(std::move(mount));
    return {};
  }

  Status ReadSysctls() {
    const Json* all = Member(document_["linux"], "sysctl", Json::value_t::object);
    const std::string value = all == nullptr ? std::string() : Text(*all, kNoIpv6);
    if (IsFurther() || value.empty()) {
      return {};
    }
    const auto number = ParseNumber(value);
    if (!number) {
      return Fail(Code::kInvalidArgument, "check sysctl '{}': '{}' is no number", kNoIpv6, value);
    }
    spec_.no_ipv6 = *number != 0;
    return {};
  }

  void FixMounts() {
    Json& mounts = document_["mounts"];
    if (!mounts.is_array()) {
      mounts = Json::array();
    }
    bool has_cgroups = false;
    for (Json& mount : mounts) {
      has_cgroups = has_cgroups || Text(mount, "destination") == kCgroupMount;
      if (IsBind(mount)) {
        FixBind(mount);
      }
    }
    RemoveDoubles(spec_.volumes, mounts);
    if (!has_cgroups && request_.kind != ContainerKind::kOwnRoot) {
      // With it the sentry's accounts are this container's own.
      mounts.push_back({{"destination", kCgroupMount},
                        {"type", "cgroup"},
                        {"source", "cgroup"},
                        {"options", {"nosuid", "noexec", "nodev", "relatime", "ro"}}});
    }
  }

  void FixBind(Json& mount) {
    mount["source"] = Absolute(Text(mount, "source"), request_.bundle);
    const Volume* const volume = VolumeAt(spec_.volumes, Text(mount, "source"));
    const auto kind = volume == nullptr ? Volume::Kind::kHost : volume->kind;
    if (kind == Volume::Kind::kMemory) {
      UseMemory(mount);
      return;
    }
    const auto uids = Mappings(mount, "uidMappings");
    const auto gids = Mappings(mount, "gidMappings");
    if ((!uids.empty() || !gids.empty()) && (uids != spec_.uids || gids != spec_.gids)) {
      spec_.mapped_mount = Text(mount, "destination");
    }
    FileMount file{.conf = {}, .source = Text(mount, "source")};
    const bool writable = !HasOption(mount, "ro");
    file.conf.upper = overlay_.mounts && writable ? UpperOf(overlay_.medium, file.source)
                                                  : MountConf::Upper::kNone;
    if (kind == Volume::Kind::kFile) {
      // Also where this container only reads it: it may be the first that has it.
      file.conf = {MountConf::Lower::kNone, MountConf::Upper::kSelf};
      file.is_pods = true;
    }
    spec_.mounts.push_back(std::move(file));
  }

  void FixNamespaces() {
    Json& linux_part = document_["linux"];
    if (!linux_part.is_object()) {
      linux_part = Json::object();
    }
    Json kept = Json::array();
    for (const Json& one : Elements(linux_part, "namespaces")) {
      const std::string type = Text(one, "type");
      const std::string path = Text(one, "path");
      if (type == "network") {
        spec_.has_netns = true;
        spec_.netns_path = path;
      } else if (type == "user") {
        spec_.userns_path = path;
      }
      // Without an entry a container shares the sentry's.
      const bool is_later = IsFurther() && type == "pid";
      if (is_later) {
        spec_.pids = path.empty() ? PidNamespace::kOwn : PidNamespace::kShared;
      }
      if (!is_later && type != "user") {
        kept.push_back(one);
      }
    }
    linux_part["namespaces"] = std::move(kept);
  }

  /// As runsc does where it reads a spec: a container whose profile is the node's usual one has
  /// none, since the sentry itself is between it and the kernel. Of a further container the sentry
  /// reads none but is sent it. Source: runsc/specutils/specutils.go, fixSpec.
  void FixSeccomp() {
    const auto name = spec_.annotations.find("io.kubernetes.cri.container-name");
    if (name == spec_.annotations.end() || name->second.empty()) {
      return;
    }
    const auto profile = spec_.annotations.find("dev.gvisor.internal.seccomp." + name->second);
    if (profile != spec_.annotations.end() && profile->second == "RuntimeDefault") {
      document_["linux"].erase("seccomp");
    }
  }

  const SpecRequest& request_;
  const Overlay& overlay_;
  Json document_;
  Spec spec_;
};

}  // namespace

bool Spec::NeedsGofer() const {
  return std::ranges::any_of(
      mounts, [](const FileMount& one) { return one.conf.lower == MountConf::Lower::kGofer; });
}

size_t Spec::Filestores() const {
  return static_cast<size_t>(std::ranges::count_if(mounts, [](const FileMount& one) {
    return one.conf.upper == MountConf::Upper::kSelf || one.conf.upper == MountConf::Upper::kAnon;
  }));
}

Result<Spec> MakeSpec(const SpecRequest& request, const Overlay& overlay) {
  return Maker(request, overlay).Make();
}

Result<std::string> WithMounts(const std::string& spec_json, const std::string& mounts_json) {
  Json document = ReadJson(spec_json, kSpecJson);
  Json mounts = ReadJson(mounts_json, kSpecJson);
  if (!document.is_object() || !mounts.is_array()) {
    return Fail(Code::kInternal, "read the mounts that the gofer has resolved: no JSON array");
  }
  document["mounts"] = std::move(mounts);
  return JsonText(document);
}

Result<std::string> WithPidNamespace(const std::string& spec_json, const std::string& name) {
  if (name.empty()) {
    return spec_json;
  }
  Json document = ReadJson(spec_json, kSpecJson);
  if (!document.is_object() || !document["linux"]["namespaces"].is_array()) {
    return Fail(Code::kInternal, "name the pid namespace: no list of namespaces");
  }
  document["linux"]["namespaces"].push_back({{"type", "pid"}, {"path", name}});
  return JsonText(document);
}

}  // namespace gantry::gvisor
