// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/pod/pause/confine.h"

#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <sys/syscall.h>

#include <gantry/toolkit/freestanding/confine.h>

#include "core/toolkit/pod/pause/engine.h"

namespace gantry::pause {

using freestanding::BecomeNobody;
using freestanding::CloseAllBut;
using freestanding::FilterCalls;
using freestanding::kMachine;
using freestanding::LeaveFiles;
using freestanding::NobodyOf;

namespace {

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

}  // namespace

void Confine() {
  const long uid = NobodyOf("/proc/self/uid_map", Require);
  const long gid = NobodyOf("/proc/self/gid_map", Require);
  CloseAllBut(kEngine);
  LeaveFiles(Require);
  BecomeNobody(uid, gid, Require);
  FilterCalls({sizeof(kFilter) / sizeof(kFilter[0]), const_cast<sock_filter*>(kFilter)}, Require);
}

}  // namespace gantry::pause
