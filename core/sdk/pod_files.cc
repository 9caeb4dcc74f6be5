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

#include <gantry/files.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/pod_files.h>

namespace gantry {
namespace {

/// Keeps the order of the keys: it is somebody's document.
using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 1U << 20;
/// As containerd and Docker have it.
constexpr const char* kShmOptions = "mode=1777,size=65536k";
constexpr const char* kShm = "/dev/shm";

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

Status MountShm(const std::string& path) {
  if (mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", path);
  }
  struct stat inside = {};
  struct stat outside = {};
  if (stat(path.c_str(), &inside) == 0 && stat((path + "/..").c_str(), &outside) == 0 &&
      inside.st_dev != outside.st_dev) {
    return {};
  }
  if (mount("shm", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, kShmOptions) != 0) {
    return FailErrno(errno, "mount the pod's shared memory on '{}'", path);
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
  const std::string name = config.hostname.empty() ? NodeName() : config.hostname;
  GANTRY_CHECK_OK(WriteFile(bundle + "/hostname", name + "\n", 0644));
  GANTRY_CHECK_OK(WriteFile(bundle + "/hosts", NodeFile("/etc/hosts"), 0644));
  GANTRY_CHECK_OK(
      WriteFile(bundle + "/resolv.conf",
                config.dns.empty() ? NodeFile("/etc/resolv.conf") : ResolvConf(config.dns), 0644));
  return config.ipc == NamespaceMode::kNode ? Status() : MountShm(bundle + "/shm");
}

Status RemovePodFiles(const std::string& bundle) {
  const std::string shm = bundle + "/shm";
  if (umount2(shm.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
      errno != ENOENT) {
    return FailErrno(errno, "unmount '{}'", shm);
  }
  if (rmdir(shm.c_str()) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", shm);
  }
  for (const PodFile& file : kFiles) {
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
  for (const PodFile& file : kFiles) {
    PutMount(mounts, Bind(pod.bundle + "/" + file.name, file.target, readonly),
             [&](const Json& there) { return IsStandIn(there, pod, file.name); });
  }
  const std::string shm = config.ipc == NamespaceMode::kNode ? kShm : pod.bundle + "/shm";
  PutMount(mounts, Bind(shm, kShm, false), [&](const Json& there) {
    // With a tmpfs each container would have one of its own.
    return TextOf(there, "type") == "tmpfs" || IsStandIn(there, pod, "shm");
  });
  return spec.dump();
}

}  // namespace gantry
