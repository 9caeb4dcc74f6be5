// SPDX-License-Identifier: Apache-2.0
//
// The system calls of gantry-wasm-compile: memory, and its descriptors. Whoever starts it sets a
// filter for its way there, with `kStarting`; the program itself a second one, without.
// No C++ library: the program has none.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace gantry::wasm::compile {

#if defined(__x86_64__)
inline constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#else
inline constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#endif

/// While it compiles.
inline constexpr unsigned kRunning[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_sigaltstack,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_sched_yield,
    SYS_getpid,
    SYS_gettid,
    SYS_restart_syscall,
    SYS_sched_getaffinity,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
};

/// What a C or Rust library tries, and does without: there is nothing to be found.
inline constexpr unsigned kRefused[] = {
    SYS_openat, SYS_readlinkat, SYS_faccessat, SYS_ioctl, SYS_fcntl, SYS_sysinfo,
#if defined(__x86_64__)
    SYS_open,   SYS_readlink,   SYS_access,
#endif
};

/// From the filter of who starts it to its own one.
inline constexpr unsigned kStarting[] = {
    SYS_execveat,   SYS_set_tid_address, SYS_set_robust_list, SYS_rseq,        SYS_prlimit64,
    SYS_prctl,      SYS_setpriority,     SYS_close_range,     SYS_getpriority, SYS_fcntl,
#if defined(__x86_64__)
    SYS_arch_prctl,
#endif
};

/// A filter, instruction by instruction.
struct CallFilter {
  static constexpr unsigned kMost =
      16 + 2 * (sizeof(kRunning) + sizeof(kRefused) + sizeof(kStarting)) / sizeof(unsigned);

  sock_filter code[kMost] = {};
  unsigned short size = 0;

  constexpr void Put(unsigned short operation, unsigned value, unsigned char yes = 0,
                     unsigned char no = 0) {
    code[size++] = {operation, yes, no, value};
  }

  constexpr void Answer(unsigned call, unsigned action) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    Put(BPF_RET | BPF_K, action);
  }
};

/// Any other call, and memory that is to be executed, ends the process.
constexpr CallFilter MakeCallFilter(bool starting) {
  // The half of the third argument that has the flags, on a little-endian machine.
  constexpr unsigned kProtection = offsetof(seccomp_data, args) + 2 * sizeof(__u64);
  CallFilter filter;
  filter.Put(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  filter.Put(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
  filter.Put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter.Put(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const unsigned call : kRunning) {
    filter.Answer(call, SECCOMP_RET_ALLOW);
  }
  if (starting) {
    for (const unsigned call : kStarting) {
      filter.Answer(call, SECCOMP_RET_ALLOW);
    }
  }
  for (const unsigned call : kRefused) {
    filter.Answer(call, SECCOMP_RET_ERRNO | 1 /* EPERM */);
  }
  filter.Put(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0);
  filter.Put(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0);
  filter.Put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter.Put(BPF_LD | BPF_W | BPF_ABS, kProtection);
  filter.Put(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
  filter.Put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter.Put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return filter;
}

}  // namespace gantry::wasm::compile
