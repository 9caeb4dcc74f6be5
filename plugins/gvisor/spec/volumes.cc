// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/volumes.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

using Fields = std::map<std::string, std::string>;

constexpr std::string_view kPrefix = "dev.gvisor.spec.mount.";
constexpr std::string_view kEmptyDirPrefix = "dev.gvisor.empty-dir.";
constexpr const char* kEmptyDirs = "kubernetes.io~empty-dir";
/// Files of writable layers do not count as something in a volume: of the pod's sandbox before.
constexpr std::string_view kFilestore = ".gvisor.filestore.";

std::string Key(const std::string& name, std::string_view field) {
  return Format("{}{}.{}", kPrefix, name, field);
}

std::unexpected<Error> Malformed(const std::string& key, const std::string& value,
                                 std::string_view must) {
  return Fail(Code::kInvalidArgument, "check annotation '{}': '{}': {}", key, value, must);
}

Status CheckField(const std::string& key, std::string_view field, const std::string& value) {
  static const std::map<std::string_view, std::set<std::string_view>> values = {
      {"type", {"bind", "tmpfs"}},
      {"share", {"container", "pod", "shared"}},
      {"directfs", {"default", "off"}}};
  const auto known = values.find(field);
  if (known != values.end()) {
    if (known->second.contains(value)) {
      return {};
    }
    std::string all;
    for (const std::string_view one : known->second) {
      all += (all.empty() ? "" : " or ") + std::string(one);
    }
    return Malformed(key, value, "must be " + all);
  }
  if (field == "source" && !value.starts_with('/')) {
    return Malformed(key, value, "must be an absolute path");
  }
  if (field != "source" && field != "options") {
    return Malformed(key, value, "must be of type, share, source, options or directfs");
  }
  return {};
}

Result<std::map<std::string, Fields>> ReadHints(const Annotations& annotations) {
  std::map<std::string, Fields> hints;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kPrefix)) {
      continue;
    }
    const std::string rest = key.substr(kPrefix.size());
    const size_t dot = rest.find('.');
    const std::string name = rest.substr(0, dot);
    // It becomes part of a path.
    if (dot == std::string::npos || name.empty() || name.contains('/')) {
      return Malformed(key, value, "must be " + std::string(kPrefix) + "NAME.FIELD");
    }
    const std::string field = rest.substr(dot + 1);
    GANTRY_CHECK_OK(CheckField(key, field, value));
    hints[name][field] = value;
  }
  for (const auto& [name, fields] : hints) {
    for (const char* field : {"type", "share"}) {
      if (!fields.contains(field)) {
        return Fail(Code::kInvalidArgument,
                    "check annotation '{}': missing; a volume needs type and share",
                    Key(name, field));
      }
    }
  }
  return hints;
}

/// Empty: not known.
std::string PodUid(const Annotations& annotations) {
  const auto text = [&](const char* key) {
    const auto found = annotations.find(key);
    return found == annotations.end() ? std::string() : found->second;
  };
  std::string uid = text(kPodUid);
  if (uid.empty()) {
    // NAMESPACE_NAME_UID, of which none has a `_` in it.
    const std::string logs = text("io.kubernetes.cri.sandbox-log-directory");
    const std::string last = logs.substr(logs.rfind('/') + 1);
    uid = std::ranges::count(last, '_') == 2 ? last.substr(last.rfind('_') + 1) : "";
  }
  return uid.contains('/') || uid.starts_with('.') ? std::string() : uid;
}

bool IsDirectory(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

/// But for the file of an engine before. A pod may have put millions of names there: none is kept,
/// and the first that is another's is enough.
Result<bool> IsEmpty(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> dir(opendir(directory.c_str()));
  if (!dir) {
    return FailErrno(errno, "list '{}'", directory);
  }
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !name.starts_with(kFilestore)) {
      return false;
    }
  }
  return true;
}

Result<bool> IsForcedShared(const Annotations& annotations, const std::string& name) {
  const std::string key = Format("{}{}.force-shared", kEmptyDirPrefix, name);
  const auto found = annotations.find(key);
  if (found == annotations.end()) {
    return false;
  }
  if (found->second != "true" && found->second != "false") {
    return Malformed(key, found->second, "must be true or false");
  }
  return found->second == "true";
}

/// Of a new tmpfs they would be others: nobody could remove what another user of the pod has made,
/// and files would not get the pod's group.
Status TakeOverRights(Volume& volume) {
  struct stat info{};
  if (stat(volume.source().c_str(), &info) != 0) {
    return FailErrno(errno, "look at the volume '{}'", volume.source());
  }
  std::string& options = volume.fields["options"];
  for (const std::string& one : {Format("mode={:o}", info.st_mode & ALLPERMS),
                                 Format("uid={}", info.st_uid), Format("gid={}", info.st_gid)}) {
    const std::string_view what = std::string_view(one).substr(0, one.find('=') + 1);
    if (!("," + options).contains("," + std::string(what))) {
      options += (options.empty() ? "" : ",") + one;
    }
  }
  return {};
}

class Finder {
 public:
  Finder(const Annotations& annotations, const std::string& pods)
      : annotations_(annotations), uid_(PodUid(annotations)), volumes_(pods + "/" + uid_) {
    volumes_ += "/volumes";
  }

  Result<Volume> Find(const std::string& name, Fields fields) const {
    Volume volume{.name = name, .fields = std::move(fields)};
    GANTRY_TRY(const bool is_empty_dir, Locate(volume));
    const std::string type = volume.fields["type"];
    GANTRY_TRY(const bool forced, IsForcedShared(annotations_, name));
    const bool is_sentrys = is_empty_dir || type == "tmpfs";
    if (is_sentrys && !is_empty_dir && !uid_.empty()) {
      return Malformed(Key(name, "type"), type, "must be bind, of a volume that is no emptyDir");
    }
    if (!is_sentrys) {
      return volume;
    }
    GANTRY_TRY(const bool is_empty, IsEmpty(volume.source()));
    if (forced || !is_empty || volume.fields["share"] == "shared") {
      // There are others who look into it.
      volume.fields["type"] = "bind";
      volume.fields["share"] = "shared";
      return volume;
    }
    const bool in_memory = is_empty_dir && type == "tmpfs";
    volume.kind = in_memory ? Volume::Kind::kMemory : Volume::Kind::kFile;
    volume.fields["type"] = "tmpfs";
    GANTRY_CHECK_OK(TakeOverRights(volume));
    return volume;
  }

 private:
  /// Says where it is; true: it is an emptyDir.
  Result<bool> Locate(Volume& volume) const {
    if (uid_.empty()) {
      // Nobody's but who gave it: a client that knows paths, as `ctr`.
      const std::string given = volume.fields["source"];
      if (!IsDirectory(given)) {
        return Malformed(Key(volume.name, "source"), given,
                         "must be a directory, where the pod's uid is not known");
      }
      return false;
    }
    GANTRY_TRY(const auto kinds, ListDirectory(volumes_));
    std::vector<std::string> found;
    for (const std::string& kind : kinds) {
      if (IsDirectory(volumes_ + "/" + kind + "/" + volume.name)) {
        found.push_back(kind);
      }
    }
    if (found.size() != 1) {
      return Fail(Code::kFailedPrecondition,
                  "find the volume of annotation '{}': {} directories '{}/*/{}'",
                  Key(volume.name, "type"), found.size(), volumes_, volume.name);
    }
    volume.fields["source"] = volumes_ + "/" + found.front() + "/" + volume.name;
    return found.front() == kEmptyDirs;
  }

  const Annotations& annotations_;
  const std::string uid_;
  std::string volumes_;
};

}  // namespace

void to_json(nlohmann::json& json, const Volume& volume) {
  json = {{"name", volume.name}, {"kind", volume.kind}, {"fields", volume.fields}};
}

void from_json(const nlohmann::json& json, Volume& volume) {
  json.at("name").get_to(volume.name);
  json.at("kind").get_to(volume.kind);
  json.at("fields").get_to(volume.fields);
  // Each has one.
  json.at("fields").at("source").get_to(volume.fields["source"]);
}

Result<std::vector<Volume>> FindVolumes(const Annotations& annotations, const std::string& pods) {
  GANTRY_TRY(auto hints, ReadHints(annotations));
  const Finder finder(annotations, pods);
  std::vector<Volume> volumes;
  for (auto& [name, fields] : hints) {
    GANTRY_TRY(Volume volume, finder.Find(name, std::move(fields)));
    if (const Volume* other = VolumeAt(volumes, volume.source())) {
      return Malformed(Key(name, "source"), volume.source(),
                       Format("must not be that of volume '{}', too", other->name));
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

Volume SharedMemory(const std::string& source) {
  // A name that the other shim has, too, and no pod. Containers may mount it with less.
  return {.name = "gvisorinternaldevshm",
          .kind = Volume::Kind::kMemory,
          .fields = {{"type", "tmpfs"}, {"share", "pod"}, {"source", source}, {"options", "rw"}}};
}

const Volume* VolumeAt(const std::vector<Volume>& volumes, const std::string& source) {
  const auto found = std::ranges::find(volumes, source, &Volume::source);
  return found == volumes.end() ? nullptr : &*found;
}

bool IsOfVolumes(const std::string& annotation) {
  return annotation.starts_with(kPrefix) || annotation.starts_with(kEmptyDirPrefix);
}

Annotations WithVolumes(Annotations annotations, const std::vector<Volume>& volumes) {
  std::erase_if(annotations, [](const auto& one) { return one.first.starts_with(kPrefix); });
  for (const Volume& volume : volumes) {
    for (const auto& [field, value] : volume.fields) {
      annotations[Key(volume.name, field)] = value;
    }
  }
  return annotations;
}

void RemoveDoubles(const std::vector<Volume>& volumes, nlohmann::json& mounts) {
  const auto is_at_it = [](const nlohmann::json& mount) {
    return mount.is_object() && mount.value("destination", nlohmann::json()) == kSharedMemory;
  };
  const auto is_pods = [&](const nlohmann::json& mount) {
    const auto source = mount.value("source", nlohmann::json());
    return source.is_string() && VolumeAt(volumes, source.get<std::string>()) != nullptr;
  };
  auto& all = mounts.get_ref<nlohmann::json::array_t&>();
  if (std::ranges::any_of(all, [&](const auto& one) { return is_at_it(one) && is_pods(one); })) {
    std::erase_if(all, [&](const auto& one) { return is_at_it(one) && !is_pods(one); });
  }
}

void UseMemory(nlohmann::json& mount) {
  mount["type"] = "tmpfs";
  const auto options = mount.find("options");
  if (options != mount.end() && options->is_array()) {
    nlohmann::json kept = nlohmann::json::array();
    std::ranges::copy_if(*options, std::back_inserter(kept),
                         [](const nlohmann::json& one) { return one != "bind" && one != "rbind"; });
    *options = std::move(kept);
  }
}

}  // namespace gantry::gvisor
