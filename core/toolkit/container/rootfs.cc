// SPDX-License-Identifier: Apache-2.0
//
// The root is a detached copy of the bundle's from the beginning. It is attached on top of the
// root of the new mount namespace: that needs no path, no rights on the way to the bundle, and
// makes the two ways to enter it one step each.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/container/rootfs.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/unique_fd.h>

#include "core/toolkit/container/devices.h"
#include "core/toolkit/container/masks.h"
#include "core/toolkit/container/spec_mount.h"

namespace gantry::container {
namespace {

/// The modes of what is made are those that are wanted.
class NoUmask {
 public:
  NoUmask() : before_(umask(0)) {}

  NoUmask(const NoUmask&) = delete;
  NoUmask& operator=(const NoUmask&) = delete;

  ~NoUmask() { umask(before_); }

 private:
  mode_t before_;
};

/// The place of a mount is a bind from elsewhere: what is in it is not the container's.
bool BindsDev(const std::vector<oci::SpecMount>& mounts) {
  return std::ranges::any_of(mounts, [](const oci::SpecMount& mount) {
    const auto words = ReadMountWords(mount);
    return words && words->bind && CleanPath(mount.destination) == "/dev";
  });
}

Result<UniqueFd> OpenRoot(int bundle, const oci::Root& root) {
  if (root.path.empty()) {
    return Fail(Code::kInvalidArgument, "root: it has no path");
  }
  Result<UniqueFd> tree = mount::CloneTree(bundle, root.path, true);
  if (!tree) {
    return std::unexpected(std::move(tree).error().Within("root"));
  }
  struct stat info{};
  if (fstat(tree->get(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Fail(Code::kFailedPrecondition, "root '{}': it is no directory", root.path);
  }
  // Nothing that is mounted in it shall be mounted in the bundle, too.
  if (Status done = mount::SetPropagation(tree->get(), {{MS_PRIVATE, true}}); !done) {
    return std::unexpected(std::move(done).error().Within("root"));
  }
  return tree;
}

/// What binds have before their own words. With a shared root they are what their sources are:
/// shared with the node, where those are shared. A container with a user namespace of its own
/// must not mount for the node.
mount::Propagation OfBinds(const mount::Propagation& root, bool other_user_namespace) {
  if (root.type == MS_SHARED) {
    return {other_user_namespace ? unsigned{MS_SLAVE} : 0U, true};
  }
  return {root.type == MS_SLAVE ? unsigned{MS_SLAVE} : unsigned{MS_PRIVATE}, true};
}

Status EnterDirectory(int directory) {
  if (fchdir(directory) != 0) {
    return FailErrno(errno, "enter the root");
  }
  return {};
}

Status ChangeRoot() {
  if (chroot(".") != 0 || chdir("/") != 0) {
    return FailErrno(errno, "change the root");
  }
  return {};
}

/// What was the root is mounted on the new one for a moment.
Status Pivot() {
  const UniqueFd before(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!before) {
    return FailErrno(errno, "open the old root");
  }
  const UniqueFd after(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!after) {
    return FailErrno(errno, "open the new root");
  }
  if (syscall(SYS_pivot_root, ".", ".") != 0) {
    return FailErrno(errno, "pivot_root{}",
                     errno == EINVAL ? " (an initramfs cannot be left: see SwitchRoot)" : "");
  }
  GANTRY_CHECK_OK(EnterDirectory(before.get()));
  if (umount2(".", MNT_DETACH) != 0) {
    return FailErrno(errno, "detach the old root");
  }
  if (chdir("/") != 0) {
    return FailErrno(errno, "enter the root");
  }
  return {};
}

/// What is mounted over the same place is what a process of the new root sees.
Status Move() {
  constexpr auto kKernels = std::to_array<const char*>({"/proc", "/sys", "/dev"});
  for (const char* path : kKernels) {
    // Under the container's root nobody needs them, and they would be there without a mask.
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT) {
      return FailErrno(errno, "unmount '{}' of the old root", path);
    }
  }
  return ChangeRoot();
}

}  // namespace

struct Rootfs::State {
  RootfsRequest request;
  mount::Propagation propagation;
  bool own_dev = true;
  MountDefaults defaults;
  UniqueFd bundle;
  UniqueFd root;
  std::vector<PreparedMount> mounts;
  std::vector<DeviceFile> devices;
  /// To become read-only when nothing is left to be written.
  std::vector<UniqueFd> writable;

  Status Open();
  Status PrepareMounts();
};

Status Rootfs::State::PrepareMounts() {
  for (const oci::SpecMount& mount : request.mounts) {
    GANTRY_TRY(PreparedMount prepared, PrepareMount(mount, defaults));
    mounts.push_back(std::move(prepared));
  }
  return {};
}

Status Rootfs::State::Open() {
  bundle = UniqueFd(open(request.bundle.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!bundle) {
    return FailErrno(errno, "open the bundle '{}'", request.bundle);
  }
  GANTRY_TRY(propagation, ReadPropagation(request.settings.rootfs_propagation));
  GANTRY_TRY(root, OpenRoot(bundle.get(), request.root));
  own_dev = !BindsDev(request.mounts);
  defaults.propagation = OfBinds(propagation, request.binds_devices);
  defaults.label = request.settings.mount_label;
  defaults.bundle = bundle.get();
  defaults.own_dev = own_dev;
  defaults.uid_mappings = request.settings.uid_mappings;
  defaults.gid_mappings = request.settings.gid_mappings;
  GANTRY_CHECK_OK(PrepareMounts());
  if (own_dev) {
    GANTRY_TRY(devices, FindDevices(request.settings.devices, request.binds_devices));
  }
  return {};
}

Rootfs::Rootfs(std::unique_ptr<State> state) : state_(std::move(state)) {}

Rootfs::Rootfs(Rootfs&&) noexcept = default;
Rootfs& Rootfs::operator=(Rootfs&&) noexcept = default;
Rootfs::~Rootfs() = default;

Result<Rootfs> Rootfs::Open(RootfsRequest request) {
  auto state = std::make_unique<State>();
  state->request = std::move(request);
  GANTRY_CHECK_OK(state->Open());
  return Rootfs(std::move(state));
}

int Rootfs::root() const { return state_->root.get(); }

Status Rootfs::Mount() {
  const NoUmask modes;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailErrno(errno, "make the mounts of this mount namespace private");
  }
  const UniqueFd top(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) {
    return FailErrno(errno, "open the old root");
  }
  if (Status done = mount::Attach(root(), top.get()); !done) {
    return std::unexpected(std::move(done).error().Within("root"));
  }
  for (const PreparedMount& prepared : state_->mounts) {
    GANTRY_CHECK_OK(MakeMount(root(), prepared, state_->defaults, state_->writable));
  }
  state_->mounts.clear();
  if (!state_->own_dev) {
    return {};
  }
  GANTRY_CHECK_OK(MakeDevices(root(), state_->devices));
  state_->devices.clear();
  return MakeDeviceLinks(root());
}

Status Rootfs::Enter(EnterBy by) {
  GANTRY_CHECK_OK(EnterDirectory(root()));
  return by == EnterBy::kPivot ? Pivot() : Move();
}

Status Rootfs::AttachConsole(int terminal) {
  const NoUmask modes;
  if (Status made = MakeConsole(root(), terminal); !made) {
    return std::unexpected(std::move(made).error().Within("console '/dev/console'"));
  }
  return {};
}

Status Rootfs::Seal() {
  const mount::Attributes read_only{MOUNT_ATTR_RDONLY, 0};
  for (const UniqueFd& mount : state_->writable) {
    GANTRY_CHECK_OK(mount::SetAttributes(mount.get(), read_only, false));
  }
  state_->writable.clear();
  const oci::LinuxSpec& settings = state_->request.settings;
  GANTRY_CHECK_OK(MakeReadOnly(root(), settings.readonly_paths));
  GANTRY_CHECK_OK(MaskPaths(root(), settings.masked_paths, settings.mount_label));
  if (state_->request.root.readonly) {
    if (Status done = mount::SetAttributes(root(), read_only, false); !done) {
      return std::unexpected(std::move(done).error().Within("make the root read-only"));
    }
  }
  if (Status done = mount::SetPropagation(root(), {{state_->propagation.type, false}}); !done) {
    return std::unexpected(std::move(done).error().Within("rootfsPropagation"));
  }
  return {};
}

Status SwitchRoot(const std::string& directory) {
  const UniqueFd target(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd top(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!target || !top) {
    return FailErrno(errno, "switch the root to '{}': open it", directory);
  }
  Status done = mount::Attach(target.get(), top.get());
  if (done) {
    done = EnterDirectory(target.get());
  }
  if (done) {
    done = ChangeRoot();
  }
  if (!done) {
    return std::unexpected(
        std::move(done).error().Within(Format("switch the root to '{}'", directory)));
  }
  return {};
}

}  // namespace gantry::container
