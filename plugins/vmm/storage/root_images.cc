// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/root_images.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <string_view>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/overlay.h>

#include "plugins/vmm/storage/disk_file.h"

namespace gantry::vmm {
namespace {

using mount::MountPoint;

constexpr size_t kMaxSysfs = 4096;
/// An overlay of more is no container's; and each is a disk of the machine.
constexpr size_t kMostLayers = 32;

/// The last one: what is mounted over others is what is seen.
const MountPoint* MountAt(const std::vector<MountPoint>& mounts, std::string_view path) {
  const auto last = mounts | std::views::reverse;
  const auto found = std::ranges::find(last, path, &MountPoint::path);
  return found == last.end() ? nullptr : &*found;
}

bool IsReadOnlyImage(const MountPoint& mount) {
  return mount.type == "erofs" || mount.type == "squashfs";
}

std::string Trimmed(std::string text) {
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

/// The file behind a loop device, where all of it is shown; else the device. Source: sysfs-block.
std::string BehindLoop(const std::string& device) {
  const std::string loop = "/sys/block" + device.substr(device.rfind('/')) + "/loop/";
  const auto offset = ReadFile(loop + "offset", kMaxSysfs);
  const auto limit = ReadFile(loop + "sizelimit", kMaxSysfs);
  const auto file = ReadFile(loop + "backing_file", kMaxSysfs);
  if (!offset || !limit || !file || Trimmed(*offset) != "0" || Trimmed(*limit) != "0") {
    return device;
  }
  const std::string path = Trimmed(*file);
  // Removed meanwhile, or of another mount namespace: then the device is all there is.
  return Exists(path) ? path : device;
}

/// Empty: it is neither a file nor a block device.
std::string ImageBehind(const MountPoint& mount) {
  struct stat info{};
  if (!mount.source.starts_with('/') || mount.root != "/" ||
      ::stat(mount.source.c_str(), &info) != 0) {
    return "";
  }
  if (S_ISBLK(info.st_mode)) {
    return mount.source.starts_with("/dev/loop") ? BehindLoop(mount.source) : mount.source;
  }
  return S_ISREG(info.st_mode) ? mount.source : "";
}

std::optional<RootImage> ImageOf(const MountPoint& mount) {
  std::string path = ImageBehind(mount);
  if (path.empty()) {
    return std::nullopt;
  }
  return RootImage{.path = std::move(path), .type = mount.type};
}

/// `lowerdir=a:b`, and, where they were given one by one, `lowerdir+=a,lowerdir+=b`: with a value's
/// own commas and colons behind backslashes. Source: Linux, fs/overlayfs/params.c.
struct OverlayOptions {
  std::vector<std::string> lower;
  std::string upper;
  bool data_only = false;
};

std::vector<std::string> SplitOptions(std::string_view text) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      words.back() += {text[i], text[i + 1]};
      ++i;
    } else if (text[i] == ',') {
      words.emplace_back();
    } else {
      words.back() += text[i];
    }
  }
  return words;
}

OverlayOptions ReadOverlay(const MountPoint& mount) {
  OverlayOptions options;
  for (const std::string& word : SplitOptions(mount.super_options)) {
    const size_t sign = word.find('=');
    const std::string name = word.substr(0, sign);
    const std::string value = sign == word.npos ? "" : word.substr(sign + 1);
    if (name == "lowerdir" || name == "lowerdir+") {
      for (auto& [dir, data] : mount::SplitLowerDirs(value)) {
        options.lower.push_back(std::move(dir));
        options.data_only = options.data_only || data;
      }
    } else if (name == "datadir+") {
      options.data_only = true;
    } else if (name == "upperdir") {
      options.upper = value;
    }
  }
  return options;
}

bool HasNothing(const std::string& directory) {
  const auto names = ListDirectory(directory, 1);
  return names && names->empty();
}

std::optional<RootImages> OfOverlay(const std::vector<MountPoint>& mounts,
                                    const MountPoint& overlay) {
  const OverlayOptions options = ReadOverlay(overlay);
  if (options.lower.empty() || options.lower.size() > kMostLayers || options.data_only ||
      (!options.upper.empty() && !HasNothing(options.upper))) {
    return std::nullopt;
  }
  RootImages images;
  for (const std::string& dir : options.lower) {
    const MountPoint* const layer = MountAt(mounts, dir);
    auto image = layer != nullptr && IsReadOnlyImage(*layer) ? ImageOf(*layer) : std::nullopt;
    if (!image) {
      return std::nullopt;
    }
    images.layers.push_back(std::move(*image));
  }
  return images;
}

bool IsReadOnly(const MountPoint& mount) {
  const auto has = [](std::string_view options) {
    return options == "ro" || options.starts_with("ro,");
  };
  return has(mount.options) || has(mount.super_options);
}

/// Nothing else shows the same device, here.
bool IsAlone(const std::vector<MountPoint>& mounts, const MountPoint& one) {
  return std::ranges::count(mounts, one.source, &MountPoint::source) == 1;
}

bool HasMountsBelow(const std::vector<MountPoint>& mounts, const std::string& rootfs) {
  return std::ranges::any_of(
      mounts, [&](const MountPoint& mount) { return mount.path.starts_with(rootfs + "/"); });
}

}  // namespace

std::optional<RootImages> FindRootImages(const std::vector<MountPoint>& mounts,
                                         const std::string& rootfs) {
  const MountPoint* const root = MountAt(mounts, rootfs);
  if (root == nullptr || HasMountsBelow(mounts, rootfs)) {
    return std::nullopt;
  }
  if (root->type == "overlay") {
    return OfOverlay(mounts, *root);
  }
  const bool own = root->type == "ext4" && !IsReadOnly(*root) && IsAlone(mounts, *root);
  if (!own && !IsReadOnlyImage(*root)) {
    return std::nullopt;
  }
  auto image = ImageOf(*root);
  // A loop device goes with the mount.
  if (!image || (own && image->path.starts_with("/dev/loop"))) {
    return std::nullopt;
  }
  return RootImages{.layers = {std::move(*image)}, .own = own};
}

Result<std::optional<RootImages>> FindRootImages(const std::string& rootfs) {
  GANTRY_TRY(const auto mounts, mount::ListMounts("/"));
  return FindRootImages(mounts, rootfs);
}

Status ReleaseRoot(const std::string& rootfs, const RootImage& image) {
  if (::umount2(rootfs.c_str(), UMOUNT_NOFOLLOW) != 0) {
    return FailErrno(errno, "unmount '{}', to give '{}' to the guest", rootfs, image.path);
  }
  return CheckUnused(image.path);
}

}  // namespace gantry::vmm
