// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pod/pod_files.h>

namespace gantry {
namespace {

/// Keeps the order of the keys: it is somebody's document.
using Json = nlohmann::ordered_json;

constexpr const char* kShm = "/dev/shm";
/// Of a file of the node that is copied: two of them have room in the pod's.
constexpr size_t kMaxFileBytes = 480U << 10;

/// A file system in memory, in the bundle.
struct Memory {
  const char* folder;
  const char* source;
  unsigned long flags;
  const char* options;
};

/// As containerd and Docker have it.
constexpr Memory kShmMemory = {"/shm", "shm", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                               "mode=1777,size=65536k"};
/// The files can be written by containers, and the bundle is on the node's /run. The count
/// of inodes bounds what their extended attributes take. Source: Linux 6.6, tmpfs(5).
constexpr Memory kFilesMemory = {"/files", "files", MS_NOSUID | MS_NODEV,
                                 "mode=755,size=1024k,nr_inodes=64"};

struct PodFile {
  const char* name;
  const char* target;
};

constexpr std::array<PodFile, 3> kFiles = {
    {{"hostname", "/etc/hostname"}, {"hosts", "/etc/hosts"}, {"resolv.conf", "/etc/resolv.conf"}}};

/// The node's file; empty where it has none.
std::string NodeFile(const char* path) {
  return ReadFile(path, kMaxFileBytes).value_or(std::string());
}

std::string NodeName() {
  std::array<char, 65> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Status MountMemory(const std::string& bundle, const Memory& memory) {
  const std::string path = bundle + memory.folder;
  if (mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", path);
  }
  struct stat inside = {};
  struct stat outside = {};
  if (stat(path.c_str(), &inside) == 0 && stat(bundle.c_str(), &outside) == 0 &&
      inside.st_dev != outside.st_dev) {
    return {};
  }
  if (::mount(memory.source, path.c_str(), "tmpfs", memory.flags, memory.options) != 0) {
    return FailErrno(errno, "mount the pod's memory '{}' on '{}'", memory.source, path);
  }
  return {};
}

Status UnmountMemory(const std::string& bundle, const Memory& memory) {
  const std::string path = bundle + memory.folder;
  if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
      errno != ENOENT) {
    return FailErrno(errno, "unmount '{}'", path);
  }
  if (rmdir(path.c_str()) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", path);
  }
  return {};
}

/// Where the pod's files are: in the bundle itself where an older engine has made them.
std::string FilesIn(const std::string& bundle) {
  const std::string folder = bundle + kFilesMemory.folder;
  return Exists(bundle + "/hosts") && !Exists(folder) ? bundle : folder;
}

/// The host's id of the pod's root. Without one in the pod that is the node's.
uint32_t RootIn(const PodConfig& config, const std::vector<IdMapping>& ids) {
  for (const IdMapping& range : ids) {
    if (config.user == NamespaceMode::kPod && range.container_id == 0 && range.length > 0) {
      return range.host_id;
    }
  }
  return 0;
}

/// One that the pod's root may write, as it may elsewhere in its containers.
Status WritePodFile(const std::string& path, const std::string& text, const PodConfig& config) {
  GANTRY_CHECK_OK(WriteFile(path, text, 0644));
  if (config.user == NamespaceMode::kPod &&
      lchown(path.c_str(), RootIn(config, config.uids), RootIn(config, config.gids)) != 0) {
    return FailErrno(errno, "give '{}' to the pod's root", path);
  }
  return {};
}

std::string Joined(std::string_view keyword, const std::vector<std::string>& words) {
  std::string line(keyword);
  for (const std::string& word : words) {
    line += " " + word;
  }
  return line + "\n";
}

Json Bind(const std::string& source, std::string_view target, bool readonly) {
  return Json{{"destination", target},
              {"type", "bind"},
              {"source", source},
              {"options", {"rbind", "rprivate", readonly ? "ro" : "rw"}}};
}

/// The member of that name; empty where there is none, or no text.
std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// What containerd 1.7 mounts in place of a file of the pod that it did not make.
/// Source: containerd 1.7, pkg/cri/sbserver/container_create.go.
bool IsStandIn(const Json& mount, const SandboxRequest& pod, std::string_view name) {
  return TextOf(mount, "source").ends_with(Format("/sandboxes/{}/{}", pod.id.str(), name));
}

/// Adds it, in place of one with the same target that `replaces` says yes to. Another
/// one there stays.
void PutMount(Json& mounts, Json mount, const std::function<bool(const Json&)>& replaces) {
  for (Json& there : mounts) {
    if (there.is_object() && there.value("destination", Json()) == mount["destination"]) {
      if (replaces(there)) {
        there = std::move(mount);
      }
      return;
    }
  }
  mounts.push_back(std::move(mount));
}

}  // namespace

std::string ResolvConf(const DnsConfig& dns) {
  std::string text;
  if (!dns.searches.empty()) {
    text += Joined("search", dns.searches);
  }
  for (const std::string& server : dns.servers) {
    text += "nameserver " + server + "\n";
  }
  if (!dns.options.empty()) {
    text += Joined("options", dns.options);
  }
  return text;
}

Status MakePodFiles(const std::string& bundle, const PodConfig& config) {
  const std::string folder = bundle + kFilesMemory.folder;
  GANTRY_CHECK_OK(MountMemory(bundle, kFilesMemory));
  GANTRY_CHECK_OK(WritePodFile(folder + "/hostname",
                               (config.hostname.empty() ? NodeName() : config.hostname) + "\n",
                               config));
  GANTRY_CHECK_OK(WritePodFile(folder + "/hosts", NodeFile("/etc/hosts"), config));
  GANTRY_CHECK_OK(WritePodFile(
      folder + "/resolv.conf",
      config.dns.empty() ? NodeFile("/etc/resolv.conf") : ResolvConf(config.dns), config));
  return config.ipc == NamespaceMode::kNode ? Status() : MountMemory(bundle, kShmMemory);
}

std::vector<std::string> PodFileMounts(const std::string& bundle) {
  return {bundle + kFilesMemory.folder, bundle + kShmMemory.folder};
}

Status RemovePodFiles(const std::string& bundle) {
  GANTRY_CHECK_OK(UnmountMemory(bundle, kShmMemory));
  GANTRY_CHECK_OK(UnmountMemory(bundle, kFilesMemory));
  for (const PodFile& file : kFiles) {
    // Where older engines made them.
    GANTRY_CHECK_OK(RemoveFile(bundle + "/" + file.name));
  }
  return {};
}

Result<std::string> WithPodFiles(const std::string& spec_json, const SandboxRequest& pod,
                                 const PodConfig& config) {
  Json spec = ReadOrderedJson(spec_json, kSpecJson);
  if (!spec.is_object()) {
    return Fail(Code::kInvalidArgument, "read config.json: no JSON object");
  }
  Json& mounts = spec["mounts"];
  if (!mounts.is_array()) {
    mounts = Json::array();
  }
  const Json root = spec.value("root", Json::object());
  const bool readonly = root.is_object() && root.value("readonly", Json()) == true;
  const std::string folder = FilesIn(pod.bundle);
  for (const PodFile& file : kFiles) {
    PutMount(mounts, Bind(folder + "/" + file.name, file.target, readonly),
             [&](const Json& there) { return IsStandIn(there, pod, file.name); });
  }
  const std::string shm =
      config.ipc == NamespaceMode::kNode ? kShm : pod.bundle + kShmMemory.folder;
  PutMount(mounts, Bind(shm, kShm, false), [&](const Json& there) {
    // With a tmpfs each container would have one of its own.
    return TextOf(there, "type") == "tmpfs" || IsStandIn(there, pod, "shm");
  });
  return spec.dump();
}

}  // namespace gantry
