// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/devices.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/mount/detached.h>

namespace gantry::container {
namespace {

struct DefaultDevice {
  const char* path;
  uint32_t major;
  uint32_t minor;
};

/// Source: Linux 6.18, Documentation/admin-guide/devices.txt.
constexpr auto kDefaultDevices = std::to_array<DefaultDevice>({
    {"/dev/full", 1, 7},
    {"/dev/null", 1, 3},
    {"/dev/random", 1, 8},
    {"/dev/tty", 5, 0},
    {"/dev/urandom", 1, 9},
    {"/dev/zero", 1, 5},
});

mode_t TypeOf(const oci::Device& device) {
  switch (device.type) {
    case 'c':
    case 'u':
      return S_IFCHR;
    case 'b':
      return S_IFBLK;
    case 'p':
      return S_IFIFO;
    default:
      return 0;
  }
}

/// Whether `info` is that device, whatever its owner and mode are.
bool IsDevice(const struct stat& info, const oci::Device& device) {
  const bool numbered = TypeOf(device) != S_IFIFO;
  return (info.st_mode & S_IFMT) == TypeOf(device) &&
         (!numbered || info.st_rdev == makedev(device.major, device.minor));
}

std::string Described(const oci::Device& device) {
  return Format("{} {}:{}", device.type, device.major, device.minor);
}

Status CheckDevice(const oci::Device& device) {
  const size_t slash = device.path.rfind('/');
  const std::string_view name = std::string_view(device.path).substr(slash + 1);
  if (!device.path.starts_with('/') || name.empty() || name == "." || name == "..") {
    return Fail(Code::kInvalidArgument, "device '{}': no absolute path of a file", device.path);
  }
  if (TypeOf(device) == 0) {
    return Fail(Code::kInvalidArgument, "device '{}': type '{}' is none of c, u, b and p",
                device.path, device.type);
  }
  return {};
}

Result<UniqueFd> NodesFile(const oci::Device& device) {
  GANTRY_TRY(UniqueFd tree, mount::CloneTree(AT_FDCWD, device.path, false));
  struct stat info{};
  if (fstat(tree.get(), &info) != 0) {
    return FailErrno(errno, "look at the node's device '{}'", device.path);
  }
  if (!IsDevice(info, device)) {
    return Fail(Code::kFailedPrecondition, "the node's '{}' is not the device {}", device.path,
                Described(device));
  }
  return tree;
}

Status BindDevice(int root, const oci::Device& device, int mount) {
  GANTRY_TRY(const UniqueFd target, MakeFileInRoot(root, device.path, 0666, Links::kRefuse));
  return mount::Attach(mount, target.get());
}

Status SetDeviceOwner(int dir, const std::string& name, const oci::Device& device) {
  if (fchownat(dir, name.c_str(), device.uid, device.gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return FailErrno(errno, "give it to {}:{}", device.uid, device.gid);
  }
  return {};
}

/// Whether it is there now.
/// Source: Linux 6.18, fs/namei.c, vfs_mknod: EPERM without the right to, and of a file system that
/// takes no devices, as one that a guest has by virtiofs does not.
Result<bool> MakeDevice(int dir, const std::string& name, const oci::Device& device) {
  const mode_t mode = TypeOf(device) | (device.mode & 07777U);
  const dev_t number = TypeOf(device) == S_IFIFO ? dev_t{0} : makedev(device.major, device.minor);
  if (mknodat(dir, name.c_str(), mode, number) == 0) {
    GANTRY_CHECK_OK(SetDeviceOwner(dir, name, device));
    return true;
  }
  if (errno == EPERM && TypeOf(device) != S_IFIFO) {
    return false;
  }
  if (errno != EEXIST) {
    return FailErrno(errno, "make it");
  }
  struct stat info{};
  if (fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return FailErrno(errno, "look at it");
  }
  // Empty files are what it was bound on the last time.
  const bool is_place = S_ISREG(info.st_mode) && info.st_size == 0;
  if (!IsDevice(info, device) && !is_place) {
    return Fail(Code::kFailedPrecondition, "something else is there, not the device {}",
                Described(device));
  }
  return !is_place;
}

Status MakeOrBindDevice(int root, const oci::Device& device) {
  const size_t slash = device.path.rfind('/');
  GANTRY_TRY(const UniqueFd dir,
             MakeDirectoryInRoot(root, device.path.substr(0, slash), 0755, Links::kRefuse));
  GANTRY_TRY(const bool made, MakeDevice(dir.get(), device.path.substr(slash + 1), device));
  if (made) {
    return {};
  }
  const auto mount = NodesFile(device);
  if (!mount) {
    return std::unexpected(
        Error(mount.error()).Within("the root's file system takes no devices, so it is bound"));
  }
  return BindDevice(root, device, mount->get());
}

struct DeviceLink {
  const char* name;
  const char* target;
};

constexpr auto kDeviceLinks = std::to_array<DeviceLink>({
    {"fd", "/proc/self/fd"},
    {"ptmx", "pts/ptmx"},
    {"stderr", "/proc/self/fd/2"},
    {"stdin", "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"},
});

Status LinkInDev(int dev, const DeviceLink& link) {
  if (symlinkat(link.target, dev, link.name) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make the link '/dev/{}'", link.name);
  }
  return {};
}

}  // namespace

Result<std::vector<DeviceFile>> FindDevices(const std::vector<oci::Device>& devices, bool bind) {
  std::vector<DeviceFile> files;
  for (const DefaultDevice& device : kDefaultDevices) {
    if (!std::ranges::contains(devices, device.path, &oci::Device::path)) {
      oci::Device plain;
      plain.path = device.path;
      plain.major = device.major;
      plain.minor = device.minor;
      files.push_back({std::move(plain), UniqueFd()});
    }
  }
  for (const oci::Device& device : devices) {
    GANTRY_CHECK_OK(CheckDevice(device));
    files.push_back({device, UniqueFd()});
  }
  for (DeviceFile& file : files) {
    // A fifo is nobody's but the container's, and may be made by anybody.
    if (bind && TypeOf(file.device) != S_IFIFO) {
      GANTRY_TRY(file.mount, NodesFile(file.device));
    }
  }
  return files;
}

Status MakeDevices(int root, const std::vector<DeviceFile>& devices) {
  for (const DeviceFile& file : devices) {
    Status made = file.mount ? BindDevice(root, file.device, file.mount.get())
                             : MakeOrBindDevice(root, file.device);
    if (!made) {
      return std::unexpected(
          std::move(made).error().Within(Format("device '{}'", file.device.path)));
    }
  }
  return {};
}

Status MakeDeviceLinks(int root) {
  GANTRY_TRY(const UniqueFd dev, MakeDirectoryInRoot(root, "/dev", 0755, Links::kRefuse));
  for (const DeviceLink& link : kDeviceLinks) {
    GANTRY_CHECK_OK(LinkInDev(dev.get(), link));
  }
  if (OpenInRoot(root, "/proc/kcore", Links::kRefuse)) {
    return LinkInDev(dev.get(), {"core", "/proc/kcore"});
  }
  return {};
}

Status MakeConsole(int root, int terminal) {
  struct stat info{};
  if (fstat(terminal, &info) != 0) {
    return FailErrno(errno, "look at the terminal");
  }
  if (!S_ISCHR(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "the terminal is no character device");
  }
  GANTRY_TRY(const UniqueFd target, MakeFileInRoot(root, "/dev/console", 0600, Links::kRefuse));
  GANTRY_TRY(const UniqueFd tree, mount::CloneTreeOf(terminal, false));
  return mount::Attach(tree.get(), target.get());
}

}  // namespace gantry::container
