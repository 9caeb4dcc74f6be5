// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/directory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <system_error>

#include <gantry/deadline.h>
#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/detached.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/vmm/machine/programs.h"

namespace gantry::vmm {
namespace {

constexpr mode_t kOwnersFile = 0600;
constexpr mode_t kOwnersDirectory = 0700;
/// Whoever knows a name gets to it.
constexpr mode_t kPassage = 0711;
constexpr mode_t kGroupsPassage = 0710;
constexpr std::string_view kNote = ".pid";
constexpr const char* kOwnRoot = "/own-root";
constexpr size_t kMaxNote = 64;

/// Of that mode whatever the umask is; one that is there stays as it is.
Status MakeDirectory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0 ? chmod(path.c_str(), mode) != 0 : errno != EEXIST) {
    return FailErrno(errno, "make '{}'", path);
  }
  return {};
}

Status ChangeOwner(const std::string& path, const MachineUser& user) {
  if (user.uid && lchown(path.c_str(), *user.uid, user.gid) != 0) {
    return FailErrno(errno, "give '{}' to user {}", path, *user.uid);
  }
  return {};
}

/// Root's, and the group may pass.
Status LetPass(const std::string& path, const MachineUser& user) {
  if (user.uid &&
      (lchown(path.c_str(), 0, user.gid) != 0 || chmod(path.c_str(), kGroupsPassage) != 0)) {
    return FailErrno(errno, "let user {} pass '{}'", *user.uid, path);
  }
  return {};
}

std::optional<ProcessId> ReadNote(const std::string& path) {
  const std::string text = ReadFile(path, kMaxNote).value_or(std::string());
  const size_t space = text.find(' ');
  if (space == std::string::npos) {
    return std::nullopt;
  }
  const int64_t pid = ParseNumber(text.substr(0, space)).value_or(0);
  const int64_t start = ParseNumber(text.substr(space + 1)).value_or(0);
  if (pid <= 0 || start <= 0) {
    return std::nullopt;
  }
  return ProcessId{static_cast<pid_t>(pid), static_cast<uint64_t>(start)};
}

Status EndNotedIn(const std::string& path, Deadline deadline) {
  const std::optional<ProcessId> noted = ReadNote(path);
  if (!noted) {
    return {};
  }
  const auto process = OpenPidfd(*noted);
  if (!process) {
    return {};
  }
  KillProcess(*process);
  pollfd ended = {.fd = process->get(), .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, PollTimeout(deadline)) == 0) {
    return Fail(Code::kDeadlineExceeded, "kill process {}, which '{}' names: it has not ended",
                noted->pid, path);
  }
  return {};
}

}  // namespace

std::string SandboxDirectory(const VmmOptions& options, std::string_view ns,
                             std::string_view sandbox) {
  return Format("{}/{:016x}", options.directory, Fingerprint(sandbox, Fingerprint(ns)));
}

Status MakeSandboxDirectory(const std::string& directory) {
  const std::filesystem::path base = std::filesystem::path(directory).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(base.parent_path(), failed);
  GANTRY_CHECK_OK(MakeDirectory(base.string(), kPassage));
  return MakeDirectory(directory, kOwnersDirectory);
}

Status MachineDirectory::MakePlace(const MachineUser& user) const {
  constexpr size_t kLongestName = sizeof("/vm/s/v_1026");
  if (!directory_.starts_with('/') || directory_.size() + kLongestName > kMaxSocketPath) {
    return Fail(Code::kInvalidArgument,
                "make a directory for a machine in '{}': an absolute path of at most {} bytes",
                directory_, kMaxSocketPath - kLongestName);
  }
  GANTRY_CHECK_OK(Remove());
  GANTRY_CHECK_OK(MakeSandboxDirectory(directory_));
  GANTRY_CHECK_OK(LetPass(directory_, user));
  return MakeDirectory(vm(), kOwnersDirectory);
}

// What the VM's processes have open, and where they listen, is of the file system: the mount that
// shows it may be another one.
Status MachineDirectory::TakeFrom(const MachineDirectory& other, const MachineUser& user) const {
  GANTRY_CHECK_OK(MakePlace(user));
  if (::mount(other.vm().c_str(), vm().c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return FailErrno(errno, "show '{}' in '{}'", other.vm(), vm());
  }
  return other.Remove();
}

Status MachineDirectory::Make(const MachineUser& user, bool vmm_listens) const {
  GANTRY_CHECK_OK(MakePlace(user));
  GANTRY_CHECK_OK(mount::MountAll(
      vm(),
      {{.type = "tmpfs",
        .source = "gantry-vmm",
        .options = {"nosuid", "nodev", "noexec", "size=1m", "nr_inodes=64", "mode=0700"}}},
      directory_ + "/scratch"));
  // What is mounted in it later comes to the VMM's own root, too.
  if (::mount(nullptr, vm().c_str(), nullptr, MS_SHARED, nullptr) != 0) {
    return FailErrno(errno, "share the mounts of '{}'", vm());
  }
  GANTRY_CHECK_OK(LetPass(vm(), user));
  GANTRY_CHECK_OK(MakeDirectory(sockets(), vmm_listens ? kOwnersDirectory : kPassage));
  if (vmm_listens) {
    GANTRY_CHECK_OK(ChangeOwner(sockets(), user));
  }
  GANTRY_CHECK_OK(WriteFile(console(), "", kOwnersFile));
  return ChangeOwner(console(), user);
}

Status MachineDirectory::NoteOwnRoot() const {
  return WriteFile(vm() + kOwnRoot, vm(), kOwnersFile);
}

Result<std::string> MachineDirectory::Show(const std::string& file, const std::string& name) const {
  std::string place = Format("{}/{}", vm(), name);
  GANTRY_TRY(const bool shown, mount::IsMountPoint(place));
  if (!shown) {
    const UniqueFd opened(open(file.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!opened) {
      return FailErrno(errno, "open '{}'", file);
    }
    GANTRY_TRY(const UniqueFd tree, mount::CloneTreeOf(opened.get(), false));
    GANTRY_CHECK_OK(WriteFile(place, "", kOwnersFile));
    GANTRY_CHECK_OK(mount::AttachAt(tree.get(), place));
  }
  if (!Exists(vm() + kOwnRoot)) {
    return place;
  }
  GANTRY_TRY(const std::string seen, ReadFile(vm() + kOwnRoot, PATH_MAX));
  return Format("{}/{}", seen, name);
}

Status MachineDirectory::Note(std::string_view name, const HostProcess& process) const {
  return WriteFile(Format("{}/{}{}", vm(), name, kNote),
                   Format("{} {}", process.pid().value, process.start_time()), kOwnersFile);
}

Status MachineDirectory::EndNoted() const {
  const Deadline deadline = std::chrono::steady_clock::now() + kProgramEnds;
  for (const std::string& name : ListDirectory(vm()).value_or(std::vector<std::string>())) {
    if (name.ends_with(kNote)) {
      GANTRY_CHECK_OK(EndNotedIn(Format("{}/{}", vm(), name), deadline));
    }
  }
  return {};
}

Status DetachMount(const std::string& path) {
  if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
      errno != ENOENT) {
    return FailErrno(errno, "unmount '{}'", path);
  }
  return {};
}

Status MachineDirectory::Remove() const {
  GANTRY_CHECK_OK(DetachMount(vm()));
  if (rmdir(vm().c_str()) != 0 && errno != ENOENT) {
    return FailErrno(errno, "remove '{}'", vm());
  }
  // Others may have theirs in it.
  rmdir(directory_.c_str());
  return {};
}

Result<UniqueFd> MachineDirectory::Listen(const std::string& path, const MachineUser& user) {
  GANTRY_CHECK_OK(RemoveFile(path));
  GANTRY_TRY(UniqueFd listener, ListenUnix(path));
  GANTRY_CHECK_OK(ChangeOwner(path, user));
  return listener;
}

Status MachineDirectory::Give(const std::string& path, const MachineUser& user) {
  return ChangeOwner(path, user);
}

std::string MachineDirectory::port(uint32_t number) const {
  return Format("{}_{}", hosts(), number);
}

}  // namespace gantry::vmm
