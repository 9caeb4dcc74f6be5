// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/remote/server/rootfs.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <gantry/toolkit/mount/options.h>

namespace gantry::remote {
namespace {

namespace fs = std::filesystem;

struct Device {
  const char* name;
  unsigned minor;
};

constexpr Device kDevices[] = {{"null", 3},   {"zero", 5},    {"full", 7},
                               {"random", 8}, {"urandom", 9}, {"tty", 0}};
constexpr unsigned kMemoryMajor = 1;
constexpr unsigned kTerminalMajor = 5;

Status Mount(const std::string& type, const std::string& source, const std::string& target,
             const std::vector<std::string>& words) {
  GANTRY_TRY(const mount::MountOptions options, mount::ParseMountOptions(words));
  const std::string data = options.JoinedData();
  if (::mount(source.c_str(), target.c_str(), type.c_str(), options.flags, data.c_str()) != 0) {
    return FailErrno(errno, "mount '{}' on '{}'", type, target);
  }
  if ((options.flags & MS_BIND) != 0 && (options.flags & ~(MS_BIND | MS_REC)) != 0) {
    const unsigned long flags = (options.flags & ~MS_REC) | MS_REMOUNT;
    if (::mount(nullptr, target.c_str(), nullptr, flags, nullptr) != 0) {
      return FailErrno(errno, "set the flags of '{}'", target);
    }
  }
  return {};
}

Status MakeTarget(const std::string& target, const std::string& source, bool bind) {
  std::error_code error;
  if (bind && !fs::is_directory(source, error)) {
    fs::create_directories(fs::path(target).parent_path(), error);
    const UniqueFd file(open(target.c_str(), O_CREAT | O_CLOEXEC | O_WRONLY, 0644));
    return file ? Status() : FailErrno(errno, "make the mount point '{}'", target);
  }
  fs::create_directories(target, error);
  return error ? FailErrno(error.value(), "make the mount point '{}'", target) : Status();
}

Status MountOne(const Json& entry, const std::string& rootfs) {
  const std::string type = entry.value("type", std::string("bind"));
  if (type == "cgroup" || type == "cgroup2") {
    return {};  // There are no cgroups in here.
  }
  std::vector<std::string> words;
  for (const Json& word : entry.value("options", Json::array())) {
    words.push_back(word.get<std::string>());
  }
  const std::string source = entry.value("source", type);
  const std::string target = rootfs + "/" + entry.value("destination", std::string());
  const bool bind = type == "bind" || type == "none";
  GANTRY_CHECK_OK(MakeTarget(target, source, bind));
  return Mount(type, source, target, words);
}

void MakeDevices(const std::string& dev) {
  for (const Device& device : kDevices) {
    const unsigned major = device.minor == 0 ? kTerminalMajor : kMemoryMajor;
    const std::string path = dev + "/" + device.name;
    mknod(path.c_str(), S_IFCHR | 0666, makedev(major, device.minor));
    chmod(path.c_str(), 0666);
  }
  const std::pair<const char*, const char*> links[] = {{"pts/ptmx", "ptmx"},
                                                       {"/proc/self/fd", "fd"},
                                                       {"/proc/self/fd/0", "stdin"},
                                                       {"/proc/self/fd/1", "stdout"},
                                                       {"/proc/self/fd/2", "stderr"}};
  for (const auto& [to, name] : links) {
    std::error_code error;
    fs::create_symlink(to, dev + "/" + name, error);
  }
}

Status Pivot(const std::string& rootfs) {
  if (chdir(rootfs.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) {
    return FailErrno(errno, "pivot to '{}'", rootfs);
  }
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
    return FailErrno(errno, "leave the old root");
  }
  return {};
}

}  // namespace

Status EnterRootfs(const Json& spec, const std::string& rootfs) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailErrno(errno, "make the mounts private");
  }
  GANTRY_CHECK_OK(Mount("bind", rootfs, rootfs, {"rbind"}));
  for (const Json& entry : spec.value("mounts", Json::array())) {
    GANTRY_CHECK_OK(MountOne(entry, rootfs));
  }
  std::error_code error;
  if (fs::is_directory(rootfs + "/dev", error)) {
    MakeDevices(rootfs + "/dev");
  }
  GANTRY_CHECK_OK(Pivot(rootfs));
  if (spec.contains("root") && spec["root"].value("readonly", false) &&
      ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    return FailErrno(errno, "make the root read-only");
  }
  return {};
}

}  // namespace gantry::remote
