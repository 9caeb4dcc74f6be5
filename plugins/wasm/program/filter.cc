// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

#include <asm/ioctls.h>

namespace gantry::wasm {
namespace {

// Files, clocks, memory, waiting, the end.
constexpr int kAllowed[] = {
    SYS_read,         SYS_write,           SYS_readv,           SYS_writev,
    SYS_pread64,      SYS_pwrite64,        SYS_preadv,          SYS_pwritev,
    SYS_preadv2,      SYS_pwritev2,        SYS_lseek,           SYS_close,
    SYS_dup,          SYS_fstat,           SYS_statx,           SYS_newfstatat,
    SYS_fstatfs,      SYS_munmap,          SYS_mremap,          SYS_madvise,
    SYS_brk,          SYS_rt_sigaction,    SYS_rt_sigprocmask,  SYS_rt_sigreturn,
    SYS_sigaltstack,  SYS_restart_syscall, SYS_openat,          SYS_openat2,
    SYS_readlinkat,   SYS_faccessat,       SYS_faccessat2,      SYS_getdents64,
    SYS_mkdirat,      SYS_unlinkat,        SYS_renameat2,       SYS_symlinkat,
    SYS_linkat,       SYS_utimensat,       SYS_fallocate,       SYS_fadvise64,
    SYS_ftruncate,    SYS_fsync,           SYS_fdatasync,       SYS_epoll_create1,
    SYS_epoll_ctl,    SYS_epoll_pwait,     SYS_epoll_pwait2,    SYS_ppoll,
    SYS_eventfd2,     SYS_timerfd_create,  SYS_timerfd_settime, SYS_clock_gettime,
    SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,       SYS_getrandom,
    SYS_sched_yield,  SYS_futex,           SYS_getpid,          SYS_gettid,
    SYS_exit,         SYS_exit_group,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
};

// Of a socket that is there.
constexpr int kOfConnections[] = {SYS_accept,      SYS_accept4,    SYS_recvfrom,   SYS_sendto,
                                  SYS_sendmmsg,    SYS_shutdown,   SYS_getsockopt, SYS_setsockopt,
                                  SYS_getsockname, SYS_getpeername};
constexpr int kOfSockets[] = {SYS_bind, SYS_listen, SYS_connect};

// Only who is not in the engine any more calls these.
constexpr int kEnding[] = {
    SYS_execve,
    SYS_execveat,
    SYS_clone,
    SYS_clone3,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_mknodat,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_memfd_create,
    SYS_memfd_secret,
    SYS_pkey_mprotect,
    SYS_shmat,
    SYS_remap_file_pages,
    SYS_personality,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_seccomp,
    SYS_syslog,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_fork
    SYS_fork,
#endif
#ifdef SYS_vfork
    SYS_vfork,
#endif
#ifdef SYS_mknod
    SYS_mknod,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
// From here on are those of x32. Source: arch/x86/include/uapi/asm/unistd.h, __X32_SYSCALL_BIT.
constexpr uint32_t kOthersFrom = 0x40000000;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kOthersFrom = 0x40000000;
#else
#error "the numbers of this architecture's system calls are not known here"
#endif

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kEnd = SECCOMP_RET_KILL_PROCESS;

constexpr uint32_t Errno(int number) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(number); }

// Numbers from here on, up to the next one.
struct Range {
  uint32_t from;
  uint32_t answer;
};

// Rules that look at arguments come one after the other: each is left by an answer, or goes on with
// the number of the system call loaded. The others are looked up behind them by halving: when a
// filter is loaded the kernel goes through it for each system call that there is.
class Rules {
 public:
  Rules() {
    constexpr size_t kMost = 512;
    code_.reserve(kMost);
    fixed_.reserve(kMost);
    Load(offsetof(seccomp_data, arch));
    Put(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    Answer(kEnd);
    Load(offsetof(seccomp_data, nr));
    Put(BPF_JMP | BPF_JGE | BPF_K, kOthersFrom, 0, 1);
    Answer(kEnd);
  }

  // The first rule of a system call counts.
  void Always(int number, uint32_t answer) {
    fixed_.push_back({.from = static_cast<uint32_t>(number), .answer = answer});
  }

  void Always(std::span<const int> numbers, uint32_t answer) {
    for (const int number : numbers) {
      Always(number, answer);
    }
  }

  // Let through where the argument is one of `values`.
  void Only(int number, int argument, std::initializer_list<uint32_t> values, uint32_t otherwise) {
    const auto count = static_cast<uint8_t>(values.size());
    Put(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0,
        static_cast<uint8_t>(2 * count + 2));
    LoadArgument(argument);
    for (const uint32_t value : values) {
      Put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      Answer(kAllow);
    }
    Answer(otherwise);
  }

  // Let through where the two arguments are just these.
  void OnlyBoth(int number, uint32_t first, uint32_t second, uint32_t otherwise) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 6);
    LoadArgument(0);
    Put(BPF_JMP | BPF_JEQ | BPF_K, first, 0, 3);
    LoadArgument(1);
    Put(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1);
    Answer(kAllow);
    Answer(otherwise);
  }

  // Let through where none of `bits` is set in the argument.
  void Without(int number, int argument, uint32_t bits, uint32_t otherwise) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4);
    LoadArgument(argument);
    Put(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    Answer(otherwise);
    Answer(kAllow);
  }

  // `otherwise`: of those that no rule is about.
  std::vector<sock_filter> Take(uint32_t otherwise) {
    std::ranges::stable_sort(fixed_, {}, &Range::from);
    std::vector<Range> ranges;
    ranges.reserve(2 * fixed_.size() + 1);
    ranges.push_back({.from = 0, .answer = otherwise});
    uint32_t next = 0;
    for (const auto& [number, answer] : fixed_) {
      if (number < next) {
        continue;  // It has a rule.
      }
      if (number > next && ranges.back().answer != otherwise) {
        ranges.push_back({.from = next, .answer = otherwise});
      }
      if (ranges.back().answer != answer) {
        ranges.push_back({.from = number, .answer = answer});
      }
      next = number + 1;
    }
    ranges.push_back({.from = next, .answer = otherwise});
    Decide(ranges);
    return std::move(code_);
  }

 private:
  void Answer(uint32_t answer) { Put(BPF_RET | BPF_K, answer, 0, 0); }

  void Decide(std::span<const Range> ranges) {
    if (ranges.size() == 1) {
      Answer(ranges.front().answer);
      return;
    }
    const size_t half = ranges.size() / 2;
    const size_t jump = code_.size();
    Put(BPF_JMP | BPF_JGE | BPF_K, ranges[half].from, 0, 0);
    Decide(ranges.first(half));
    const size_t distance = code_.size() - jump - 1;
    if (distance <= std::numeric_limits<uint8_t>::max()) {
      code_[jump].jt = static_cast<uint8_t>(distance);
    } else {
      // A conditional jump does not reach so far.
      code_[jump].jf = 1;
      const sock_filter far = {BPF_JMP | BPF_JA, 0, 0, static_cast<uint32_t>(distance)};
      code_.insert(code_.begin() + static_cast<ptrdiff_t>(jump) + 1, far);
    }
    Decide(ranges.subspan(half));
  }

  void Put(int operation, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(operation), if_true, if_false, value});
  }

  void Load(size_t offset) { Put(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }

  // The lower half, which is all that these system calls take of it.
  void LoadArgument(int number) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    Load(offsetof(seccomp_data, args) + static_cast<size_t>(number) * sizeof(uint64_t));
  }

  std::vector<sock_filter> code_;
  // Of one number each.
  std::vector<Range> fixed_;
};

void AddSockets(const FilterRequest& request, Rules& rules) {
  if (request.sockets) {
    rules.Only(SYS_socket, 0, {AF_INET, AF_INET6}, Errno(EPERM));
  } else {
    rules.Always(SYS_socket, Errno(EPERM));
  }
  rules.Always(kOfSockets, request.sockets ? kAllow : Errno(EPERM));
  // Two ends in one process: nobody needs it, and a name of its own would be another family's.
  rules.Always(SYS_socketpair, Errno(EPERM));
  // The gate is a socket that is there until the guest runs.
  rules.Always(SYS_sendmsg, kAllow);
  rules.Always(SYS_recvmsg, kAllow);
  rules.Always(kOfConnections, request.sockets || request.connections ? kAllow : Errno(EPERM));
}

}  // namespace

std::vector<sock_filter> FilterFor(const FilterRequest& request) {
  Rules rules;
  rules.Always(kAllowed, kAllow);
  rules.Without(SYS_mmap, 2, PROT_EXEC, kEnd);
  rules.Without(SYS_mprotect, 2, PROT_EXEC, kEnd);
  rules.Only(SYS_fcntl, 1, {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL},
             Errno(EINVAL));
  rules.Only(SYS_ioctl, 1, {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO}, Errno(ENOTTY));
  rules.Only(SYS_tgkill, 0, {static_cast<uint32_t>(request.self)}, Errno(EPERM));
  AddSockets(request, rules);
  if (request.seccomp_flags) {
    rules.OnlyBoth(SYS_seccomp, SECCOMP_SET_MODE_FILTER, *request.seccomp_flags, kEnd);
  }
  rules.Always(kEnding, kEnd);
  return rules.Take(Errno(ENOSYS));
}

}  // namespace gantry::wasm
