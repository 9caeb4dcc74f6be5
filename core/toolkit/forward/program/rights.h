// SPDX-License-Identifier: Apache-2.0
//
// What the end on the host may do from its start on: carry bytes between descriptors that it is
// given. It reads what clients and pods send, so it is nobody, nowhere, before it reads a byte of
// theirs; and on a node there are other processes of nobody's, whom it must not let look into it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/freestanding/confine.h>

namespace gantry::freestanding {

/// Of its own it has the conversation with the engine: no file and no network, no signal, nobody
/// to be; another system call ends the process. Started by root. Where there is no seccomp it goes
/// on without: it needs none of them. `require`: as confine.h has it.
template <class Require>
void MayDoNoMore(Require require) {
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
  const long uid = NobodyOf("/proc/self/uid_map", require);
  const long gid = NobodyOf("/proc/self/gid_map", require);
  CloseAllBut(forward::kControlNumber);
  LeaveNetwork(require);
  LeaveFiles(require);
  BecomeNobody(uid, gid, require);
  FilterCalls({kHead + kCount + 2, program}, require);
}

}  // namespace gantry::freestanding
