// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/choice.h"

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace gantry::vmm {
namespace {

constexpr auto kGuestTypes = std::to_array<std::string_view>(
    {"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "devtmpfs", "ramfs",
     "debugfs", "tracefs", "securityfs", "bpf", "fusectl", "binfmt_misc", "configfs"});
/// Which a guest's kernel mounts from a disk; see tools/vmm/make-image.
constexpr auto kDiskTypes = std::to_array<std::string_view>({"ext4", "erofs", "squashfs"});

constexpr std::string_view kInstead =
    "leave the mount out, or use a handler whose containers share the node's kernel";

std::unexpected<Error> Refuse(std::string_view what, std::string_view instead) {
  return Fail(Code::kFailedPrecondition, "{}; {}", what, instead);
}

Status CheckKind(const Source& source) {
  switch (source.kind) {
    case SourceKind::kDirectory:
    case SourceKind::kFile:
      return {};
    case SourceKind::kSocket:
      return Refuse("its source is a socket of the node, to which a process in a VM cannot connect",
                    kInstead);
    case SourceKind::kFifo:
      return Refuse("its source is a FIFO of the node, whose other end no VM has", kInstead);
    case SourceKind::kBlockDevice:
      return Refuse("its source is a block device",
                    "give it to the container as a device ('linux.devices', of Kubernetes "
                    "'volumeDevices')");
    case SourceKind::kCharDevice:
      return Refuse("its source is a character device of the node, which a VM has not", kInstead);
  }
  return {};
}

Result<Way> ChooseBind(const oci::SpecMount& mount, const Source& source) {
  GANTRY_CHECK_OK(CheckKind(source));
  if (ReadBindWords(mount).tells) {
    return Refuse(
        "mounts below it are to show on the node (propagation 'shared', of Kubernetes "
        "'Bidirectional'), and what a VM mounts does not",
        "use 'rslave' ('HostToContainer') or none");
  }
  if (source.file_system == HUGETLBFS_MAGIC) {
    return Way::kHugePages;
  }
  if (mount.destination != "/dev/shm" || source.file_system != TMPFS_MAGIC) {
    return Way::kShared;
  }
  if (source.path == "/dev/shm") {
    return Refuse("it is the node's own shared memory, which a VM has not",
                  "run the pod without the node's IPC namespace");
  }
  return Way::kMemory;
}

}  // namespace

BindWords ReadBindWords(const oci::SpecMount& mount) {
  BindWords words;
  words.bind = mount.type == "bind" || mount.type == "rbind";
  words.recursive = mount.type == "rbind";
  for (const std::string& option : mount.options) {
    if (option == "bind" || option == "rbind") {
      words.bind = true;
      words.recursive = option == "rbind";
    } else if (option == "ro" || option == "rro" || option == "rw" || option == "rrw") {
      words.read_only = option.ends_with("ro");
    } else if (option == "slave" || option == "rslave") {
      words.follows = true;
    } else if (option == "shared" || option == "rshared") {
      words.tells = true;
    }
  }
  return words;
}

Result<bool> NeedsSource(const oci::SpecMount& mount) {
  if (ReadBindWords(mount).bind) {
    return true;
  }
  if (std::ranges::contains(mount.options, std::string_view("remount")) ||
      std::ranges::contains(kGuestTypes, mount.type)) {
    return false;
  }
  if (std::ranges::contains(kDiskTypes, mount.type)) {
    return true;
  }
  return Refuse(Format("a guest mounts no file system of type '{}'", mount.type),
                "mount it on the node, and bind it");
}

Result<Way> ChooseWay(const oci::SpecMount& mount, const Source& source) {
  if (ReadBindWords(mount).bind) {
    return ChooseBind(mount, source);
  }
  if (source.kind != SourceKind::kBlockDevice && source.kind != SourceKind::kFile) {
    return Refuse(
        Format("its source is {} and no image of '{}'", KindName(source.kind), mount.type),
        kInstead);
  }
  return Way::kDisk;
}

// Source: containerd, internal/cri/server/container_create_linux.go; kubelet,
// pkg/kubelet/container.
bool IsCopied(const oci::SpecMount& mount, const Source& source) {
  constexpr auto kPods = std::to_array<std::string_view>(
      {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/dev/termination-log"});
  return source.kind == SourceKind::kFile &&
         (ReadBindWords(mount).read_only || std::ranges::contains(kPods, mount.destination));
}

bool IsPods(const Source& source) { return source.path.contains("/kubernetes.io~empty-dir/"); }

}  // namespace gantry::vmm
