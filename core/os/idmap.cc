// SPDX-License-Identifier: Apache-2.0
#include "core/os/idmap.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/mount_options.h"

namespace gantry::os {
namespace {

// A process that does nothing but hold a user namespace. It shares the table of
// descriptors, so it keeps no pipe of ours open; it gives no SIGCHLD, so a
// reaper elsewhere in this process does not see it. Ends with this object.
class Holder {
 public:
  Holder() {
    clone_args args{};
    int pidfd = -1;
    args.flags = CLONE_NEWUSER | CLONE_FILES | CLONE_PIDFD;
    args.pidfd = reinterpret_cast<__u64>(&pidfd);
    const long child = syscall(SYS_clone3, &args, sizeof(args));
    if (child == 0) {
      // Only system calls from here: this is a copy of a process with threads.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
      }
    }
    errno_ = child < 0 ? errno : 0;
    pid_ = child < 0 ? -1 : static_cast<pid_t>(child);
    pidfd_.reset(pidfd);
  }

  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  ~Holder() {
    if (pid_ > 0) {
      syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
      siginfo_t info{};
      waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | __WALL);
    }
  }

  int error() const { return errno_; }

  std::string proc(std::string_view file) const { return Format("/proc/{}/{}", pid_, file); }

 private:
  int errno_ = 0;
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

Result<std::string> MapText(const std::string& map) {
  GANTRY_TRY(const auto ranges, ParseIdRanges(map));
  std::string text;
  for (const IdRange& range : ranges) {
    text += Format("{} {} {}\n", range.inside, range.outside, range.count);
  }
  return text;
}

Status WriteMap(const std::string& file, const std::string& text, const std::string& map) {
  Status written = WriteExisting(file, text);
  if (!written && written.error().sys_errno == EINVAL) {
    return Fail(Code::kInvalidArgument, "id mapping '{}': refused by the kernel", map);
  }
  return written;
}

}  // namespace

Result<UniqueFd> CreateUserNamespace(const std::string& uidmap, const std::string& gidmap) {
  GANTRY_TRY(const std::string uids, MapText(uidmap));
  GANTRY_TRY(const std::string gids, MapText(gidmap));
  const Holder holder;
  if (holder.error() != 0) {
    return FailErrno(holder.error(), "create a user namespace");
  }
  GANTRY_CHECK_OK(WriteMap(holder.proc("uid_map"), uids, uidmap));
  GANTRY_CHECK_OK(WriteMap(holder.proc("gid_map"), gids, gidmap));
  UniqueFd fd(open(holder.proc("ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '{}'", holder.proc("ns/user"));
  }
  return fd;
}

Result<UniqueFd> CloneIdmapped(const std::string& path, int user_namespace, bool recursive) {
  const unsigned recurse = recursive ? AT_RECURSIVE : 0U;
  UniqueFd tree(open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recurse));
  if (!tree) {
    return FailErrno(errno, "clone the mount '{}'", path);
  }
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<__u64>(user_namespace);
  if (mount_setattr(tree.get(), "", AT_EMPTY_PATH | recurse, &attributes, sizeof(attributes)) !=
      0) {
    return FailErrno(errno, "map the ids of mount '{}'", path);
  }
  return tree;
}

Status AttachMount(int mount, const std::string& target) {
  if (move_mount(mount, "", AT_FDCWD, target.c_str(),
                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) != 0) {
    return FailErrno(errno, "attach a mount to '{}'", target);
  }
  return {};
}

}  // namespace gantry::os
