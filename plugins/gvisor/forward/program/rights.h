// SPDX-License-Identifier: Apache-2.0
//
// What the end on the host may do from its start on: carry bytes between descriptors that it is
// given. It reads what clients and pods send, and on a node there are other processes of nobody's,
// whom it must not let look into it.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "plugins/gvisor/freestanding.h"

namespace gantry::freestanding {

/// No signal of its own, no file to open, nobody to be: another system call ends the process.
/// Where there is no seccomp it goes on without: it needs none of them.
inline void MayDoNoMore() {
#if defined(__x86_64__)
  constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#else
  constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#endif
  static constexpr unsigned kAllowed[] = {
      SYS_ppoll, SYS_recvfrom, SYS_sendto,     SYS_recvmsg,    SYS_shutdown,
      SYS_close, SYS_madvise,  SYS_setsockopt, SYS_exit_group, SYS_restart_syscall};
  constexpr int kCount = sizeof(kAllowed) / sizeof(kAllowed[0]);
  constexpr int kHead = 4;
  static sock_filter program[kHead + kCount + 2] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (int i = 0; i < kCount; ++i) {
    // To the last instruction.
    program[kHead + i] =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAllowed[i], static_cast<unsigned char>(kCount - i), 0);
  }
  program[kHead + kCount] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  program[kHead + kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter = {kHead + kCount + 2, program};
  Call(SYS_prctl, PR_SET_DUMPABLE, 0);
  Call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
  Call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, Address(&filter));
}

}  // namespace gantry::freestanding
