// SPDX-License-Identifier: Apache-2.0
//
// The calls are those of libgrpc 1.51 with glibc 2.41 on its way to an answer, as strace
// shows them, and what the C library calls where it ends the process or has a signal. Threads are
// made by clone(2), whose flags a filter can see; glibc takes it where it hears that there is no
// clone3(2).
#include "plugins/wasm/fetch/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace gantry::wasm::fetch {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#else
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#endif

constexpr unsigned kCalls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_fcntl,
    SYS_connect,
    SYS_sendto,
    SYS_sendmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_ppoll,
    SYS_eventfd2,
    SYS_pipe2,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_uname,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_time
    SYS_time,
#endif
};

/// Where the argument, of its lower half what `mask` leaves, is `value`.
struct CallWith {
  unsigned call;
  unsigned argument;
  unsigned mask;
  unsigned value;
};

constexpr CallWith kCallsWith[] = {
    {.call = SYS_socket, .argument = 0, .mask = ~0U, .value = AF_UNIX},
    {.call = SYS_clone, .argument = 0, .mask = CLONE_THREAD, .value = CLONE_THREAD},
    {.call = SYS_mmap, .argument = 2, .mask = PROT_EXEC, .value = 0},
    {.call = SYS_mprotect, .argument = 2, .mask = PROT_EXEC, .value = 0},
    {.call = SYS_prctl, .argument = 0, .mask = ~0U, .value = PR_SET_NAME},
};

constexpr unsigned kAbsent = SECCOMP_RET_ERRNO | ENOSYS;

std::vector<sock_filter> MakeFilter() {
  std::vector<sock_filter> code;
  const auto put = [&code](unsigned operation, unsigned value, unsigned yes = 0, unsigned no = 0) {
    code.push_back(
        {static_cast<__u16>(operation), static_cast<__u8>(yes), static_cast<__u8>(no), value});
  };
  put(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  put(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
  put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  put(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const unsigned call : kCalls) {
    put(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  for (const CallWith& one : kCallsWith) {
    put(BPF_JMP | BPF_JEQ | BPF_K, one.call, 0, 5);
    // The lower half, on a little-endian machine.
    put(BPF_LD | BPF_W | BPF_ABS,
        static_cast<unsigned>(offsetof(seccomp_data, args) + one.argument * sizeof(__u64)));
    put(BPF_ALU | BPF_AND | BPF_K, one.mask);
    put(BPF_JMP | BPF_JEQ | BPF_K, one.value, 0, 1);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    put(BPF_RET | BPF_K, kAbsent);
  }
  put(BPF_RET | BPF_K, kAbsent);
  return code;
}

}  // namespace

Status GiveUpCalls() {
  std::vector<sock_filter> code = MakeFilter();
  const sock_fprog filter = {.len = static_cast<unsigned short>(code.size()),
                             .filter = code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Fail(Code::kInternal, "confine gantry-wasm-fetch: set no_new_privs: {}",
                ErrnoName(errno));
  }
  // Libraries may have made threads by now.
  const long loaded =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  if (loaded != 0) {
    return Fail(Code::kInternal, "confine gantry-wasm-fetch: load its system call filter: {}",
                loaded < 0 ? ErrnoName(errno) : "a thread has another one");
  }
  return {};
}

}  // namespace gantry::wasm::fetch
