// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/disk_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include <gantry/format.h>
#include <gantry/id_mapping.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {
namespace {

/// Where the user may pass and make nothing: a link of his would lead root elsewhere.
std::string PlaceOf(const MachineDirectory& directory, const std::string& serial) {
  return Format("{}/disk-{}", directory.vm(), serial);
}

/// Root's is shown as the user's, and of a group that nobody is in: VMs may have one in common.
Status ShowAsUsers(const UniqueFd& mount, uint32_t user, const std::string& file) {
  const std::vector<IdMapping> ids = {{.host_id = user, .container_id = 0, .length = 1}};
  GANTRY_TRY(const UniqueFd space, mount::NewUserNamespace(ids, ids));
  if (const Status mapped = mount::MapIds(mount.get(), space.get(), false); !mapped) {
    return Fail(Code::kFailedPrecondition,
                "let the VMM of user {} open the disk '{}': {}: use QEMU, which gets it open, or "
                "the option 'users: 0', by which VMMs run as root",
                user, file, mapped.error().message);
  }
  return {};
}

}  // namespace

Result<std::string> LetOpen(const MachineDirectory& directory, const MachineUser& user,
                            const std::string& serial, const std::string& file) {
  constexpr mode_t kMode = 0600;
  std::string place = PlaceOf(directory, serial);
  GANTRY_TRY(const bool mounted, mount::IsMountPoint(place));
  if (mounted) {
    return place;
  }
  const UniqueFd opened(open(file.c_str(), O_PATH | O_CLOEXEC));
  if (!opened) {
    return FailErrno(errno, "open the disk '{}'", file);
  }
  GANTRY_TRY(const UniqueFd tree, mount::CloneTreeOf(opened.get(), false));
  if (user.uid) {
    GANTRY_CHECK_OK(ShowAsUsers(tree, *user.uid, file));
  }
  GANTRY_CHECK_OK(WriteFile(place, "", kMode));
  GANTRY_CHECK_OK(mount::AttachAt(tree.get(), place));
  return place;
}

Status CloseFile(const MachineDirectory& directory, const std::string& serial) {
  const std::string place = PlaceOf(directory, serial);
  GANTRY_CHECK_OK(DetachMount(place));
  return RemoveFile(place);
}

}  // namespace gantry::vmm
