// SPDX-License-Identifier: Apache-2.0
//
// For a helper program on the host that a tenant could come to control: it gives up what it has,
// for good, before it has to do with anybody. Each step that fails is told to `require`, which is
// called with its name and the kernel's answer, a negative errno where it failed, and gives the
// answer back or does not return: without one of them the program must not go on.
#pragma once

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include <gantry/toolkit/freestanding/kernel.h>

namespace gantry::freestanding {

inline constexpr long kDetach = 2;  // MNT_DETACH
/// As containerd's pause image.
inline constexpr long kNobody = 65535;
/// The bounding set has no more.
inline constexpr long kMaxCapabilities = 64;

#if defined(__x86_64__)
inline constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#else
inline constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#endif

/// The highest id up to nobody's that FILE, a uid_map or gid_map, has; 0 where there
/// is none. Source: user_namespaces(7).
template <class Require>
long NobodyOf(const char* file, Require require) {
  // A few lines, to stay within the page that the stack has anyhow.
  char text[256] = {};
  const long fd = require(file, Call(SYS_openat, kAtCwd, Address(file), 0));
  const long size = require(file, Call(SYS_read, fd, Address(text), sizeof(text)));
  Call(SYS_close, fd);
  long nobody = 0;
  long fields[3] = {};
  int field = 0;
  bool digits = false;
  for (long i = 0; i < size; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      fields[field] = fields[field] * 10 + (text[i] - '0');
      digits = true;
      continue;
    }
    field += digits && field < 2 ? 1 : 0;
    digits = false;
    if (text[i] == '\n') {
      const long last = fields[0] + fields[2] - 1;
      const long id = last < kNobody ? last : kNobody;
      nobody = id >= fields[0] && id > nobody ? id : nobody;
      fields[0] = fields[1] = fields[2] = 0;
      field = 0;
    }
  }
  return nobody;
}

/// What is mounted stays as it is for all others.
template <class Require>
void LeaveFiles(Require require) {
  require("unshare the mounts", Call(SYS_unshare, CLONE_NEWNS));
  require("make the mounts private", Call(SYS_mount, 0, Address("/"), 0, MS_REC | MS_PRIVATE));
  // Any folder will do.
  constexpr const char* kPlace = "/proc";
  require("mount an empty root", Call(SYS_mount, Address("none"), Address(kPlace), Address("tmpfs"),
                                      MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                      Address("size=4k,nr_inodes=1,mode=555")));
  require("enter the empty root", Call(SYS_chdir, Address(kPlace)));
  const char* const here = ".";
  // The old root comes to lie on the new one, and is taken away. Source: pivot_root(2).
  const long changed = Call(SYS_pivot_root, Address(here), Address(here));
  if (changed == kErrnoInvalid) {
    // The node runs from its initramfs: what is there stays, out of reach.
    require("move the empty root", Call(SYS_mount, Address(here), Address("/"), 0, MS_MOVE));
    require("change to the empty root", Call(SYS_chroot, Address(here)));
  } else {
    require("change to the empty root", changed);
    require("detach the old root", Call(SYS_umount2, Address(here), kDetach));
  }
  require("enter the empty root", Call(SYS_chdir, Address("/")));
}

/// Alone with no device but a loopback that is down. Sockets that it has or is given stay where
/// they are.
template <class Require>
void LeaveNetwork(Require require) {
  require("unshare the network", Call(SYS_unshare, CLONE_NEWNET));
}

/// With no right left, and nobody but root may look into it.
template <class Require>
void BecomeNobody(long uid, long gid, Require require) {
  require("drop the groups", Call(SYS_setgroups));
  require("become nobody's group", Call(SYS_setresgid, gid, gid, gid));
  for (long one = 0; one < kMaxCapabilities; ++one) {
    const long dropped = Call(SYS_prctl, PR_CAPBSET_DROP, one);
    if (dropped == kErrnoInvalid) {
      break;
    }
    require("drop a capability", dropped);
  }
  require("become nobody", Call(SYS_setresuid, uid, uid, uid));
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  require("drop the capabilities", Call(SYS_capset, Address(&header), Address(none)));
  require("set no_new_privs", Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1));
  require("be no one's to trace", Call(SYS_prctl, PR_SET_DUMPABLE, 0));
}

/// Without those below the number `kept` and above it.
inline void CloseAllBut(int kept) {
  for (int fd = 0; fd < kept; ++fd) {
    Call(SYS_close, fd);
  }
  // Before Linux 5.9 what the keeper gives is all there is.
  Call(SYS_close_range, kept + 1, ~0U);
}

/// From here on a system call that `filter` does not let through ends the process.
template <class Require>
void FilterCalls(const sock_fprog& filter, Require require) {
  const long filtered = Call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, Address(&filter));
  if (filtered != kErrnoInvalid) {  // A kernel without filters.
    require("filter system calls", filtered);
  }
}

}  // namespace gantry::freestanding
