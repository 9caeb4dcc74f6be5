// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/pause/confine.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/signal.h>

#include "plugins/runc/pause/engine.h"

namespace gantry::pause {
namespace {

constexpr long kDetach = 2;  // MNT_DETACH
/// As containerd's pause image.
constexpr long kNobody = 65535;
/// The bounding set has no more.
constexpr long kMaxCapabilities = 64;

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#else
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#endif

constexpr unsigned kNumberAt = __builtin_offsetof(seccomp_data, nr);
constexpr unsigned kMachineAt = __builtin_offsetof(seccomp_data, arch);
/// The half of the first argument that matters, on a little-endian machine.
constexpr unsigned kArgumentAt = __builtin_offsetof(seccomp_data, args);

constexpr sock_filter Load(unsigned at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }

constexpr sock_filter Answer(unsigned action) { return BPF_STMT(BPF_RET | BPF_K, action); }

/// Goes on `yes` or `no` instructions further.
constexpr sock_filter IfIs(unsigned value, unsigned char yes, unsigned char no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

/// What is called from here on, with the first argument for those that could do more.
constexpr sock_filter kFilter[] = {
    Load(kMachineAt),
    IfIs(kMachine, 1, 0),
    Answer(SECCOMP_RET_KILL_PROCESS),
    Load(kNumberAt),
    IfIs(SYS_rt_sigtimedwait, 16, 0),
    IfIs(SYS_wait4, 15, 0),
    IfIs(SYS_read, 14, 0),
    IfIs(SYS_write, 13, 0),
    IfIs(SYS_close, 12, 0),
    IfIs(SYS_getpid, 11, 0),
    IfIs(SYS_pipe2, 10, 0),
    IfIs(SYS_exit_group, 9, 0),
    IfIs(SYS_restart_syscall, 8, 0),
    IfIs(SYS_clone, 2, 0),
    IfIs(SYS_prctl, 3, 0),
    Answer(SECCOMP_RET_KILL_PROCESS),
    Load(kArgumentAt),
    IfIs(SIGCHLD, 3, 2),
    Load(kArgumentAt),
    IfIs(PR_SET_PDEATHSIG, 1, 0),
    Answer(SECCOMP_RET_KILL_PROCESS),
    Answer(SECCOMP_RET_ALLOW),
};

/// The highest id up to nobody's that FILE, a uid_map or gid_map, has; 0 where there
/// is none. Source: user_namespaces(7).
long NobodyOf(const char* file) {
  // A few lines, to stay within the page that the stack has anyhow.
  char text[256] = {};
  const long fd = Require(file, Call(SYS_openat, kAtCwd, Address(file), 0));
  const long size = Require(file, Call(SYS_read, fd, Address(text), sizeof(text)));
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
void LeaveFiles() {
  Require("unshare the mounts", Call(SYS_unshare, CLONE_NEWNS));
  Require("make the mounts private", Call(SYS_mount, 0, Address("/"), 0, MS_REC | MS_PRIVATE));
  // Any folder will do.
  constexpr const char* kPlace = "/proc";
  Require("mount an empty root", Call(SYS_mount, Address("none"), Address(kPlace), Address("tmpfs"),
                                      MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                      Address("size=4k,nr_inodes=1,mode=555")));
  Require("enter the empty root", Call(SYS_chdir, Address(kPlace)));
  const char* const here = ".";
  // The old root comes to lie on the new one, and is taken away. Source: pivot_root(2).
  const long changed = Call(SYS_pivot_root, Address(here), Address(here));
  if (changed == kErrnoInvalid) {
    // The node runs from its initramfs: what is there stays, out of reach.
    Require("move the empty root", Call(SYS_mount, Address(here), Address("/"), 0, MS_MOVE));
    Require("change to the empty root", Call(SYS_chroot, Address(here)));
  } else {
    Require("change to the empty root", changed);
    Require("detach the old root", Call(SYS_umount2, Address(here), kDetach));
  }
  Require("enter the empty root", Call(SYS_chdir, Address("/")));
}

void BecomeNobody(long uid, long gid) {
  Require("drop the groups", Call(SYS_setgroups));
  Require("become nobody's group", Call(SYS_setresgid, gid, gid, gid));
  for (long one = 0; one < kMaxCapabilities; ++one) {
    const long dropped = Call(SYS_prctl, PR_CAPBSET_DROP, one);
    if (dropped == kErrnoInvalid) {
      break;
    }
    Require("drop a capability", dropped);
  }
  Require("become nobody", Call(SYS_setresuid, uid, uid, uid));
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  Require("drop the capabilities", Call(SYS_capset, Address(&header), Address(none)));
  Require("set no_new_privs", Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1));
  Require("be no one's to trace", Call(SYS_prctl, PR_SET_DUMPABLE, 0));
}

void CloseAllBut(int kept) {
  for (int fd = 0; fd < kept; ++fd) {
    Call(SYS_close, fd);
  }
  // Before Linux 5.9 what the keeper gives is all there is.
  Call(SYS_close_range, kept + 1, ~0U);
}

}  // namespace

void Confine() {
  const long uid = NobodyOf("/proc/self/uid_map");
  const long gid = NobodyOf("/proc/self/gid_map");
  CloseAllBut(kEngine);
  LeaveFiles();
  BecomeNobody(uid, gid);
  const sock_fprog program = {sizeof(kFilter) / sizeof(kFilter[0]),
                              const_cast<sock_filter*>(kFilter)};
  const long filtered = Call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, Address(&program));
  if (filtered != kErrnoInvalid) {  // A kernel without filters.
    Require("filter system calls", filtered);
  }
}

}  // namespace gantry::pause
