// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/confine.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::vmm::vsock {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// A sanitizer makes calls of its own, and asks for nothing that is not in its memory.
constexpr uint32_t kOtherwise = SECCOMP_RET_ALLOW;
#else
constexpr uint32_t kOtherwise = SECCOMP_RET_KILL_PROCESS;
#endif

/// The most frequent ones first.
constexpr uint32_t kAllowed[] = {
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    SYS_epoll_pwait,
    SYS_sendmsg,
    SYS_recvmsg,
    // eventfd_write, and standard error.
    SYS_write,
    SYS_clock_gettime,
    SYS_madvise,
    SYS_epoll_ctl,
    SYS_connect,
    SYS_accept4,
    SYS_close,
    SYS_shutdown,
    SYS_sendto,
    SYS_recvfrom,
    SYS_fcntl,
    SYS_fstat,
    SYS_newfstatat,
    SYS_munmap,
    SYS_brk,
    SYS_restart_syscall,
    SYS_exit_group,
};

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    Put(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
    Put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    LoadNumber();
  }

  void Allow(uint32_t number) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    Put(BPF_RET | BPF_K, kAllow, 0, 0);
  }

  /// Where the argument, of 32 bits, is `value` in the bits of `mask`.
  void AllowWith(uint32_t number, size_t argument, uint32_t mask, uint32_t value) {
    Put(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
    Load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
    Put(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    Put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    Put(BPF_RET | BPF_K, kAllow, 0, 0);
    Put(BPF_RET | BPF_K, kOtherwise, 0, 0);
  }

  Status Apply() {
    Put(BPF_RET | BPF_K, kOtherwise, 0, 0);
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                             .filter = code_.data()};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return FailErrno(errno, "filter system calls");
    }
    return {};
  }

 private:
  void Put(int operation, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(operation), if_true, if_false, value});
  }

  void Load(size_t offset) { Put(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }

  void LoadNumber() { Load(offsetof(seccomp_data, nr)); }

  std::vector<sock_filter> code_;
};

bool ChangeRoot() { return chroot(".") == 0; }

Status DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2]{};
  if (syscall(SYS_capset, &header, none) != 0) {
    return FailErrno(errno, "drop all capabilities");
  }
  return {};
}

}  // namespace

Result<size_t> ReserveDescriptors(size_t streams) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return FailErrno(errno, "ask how many descriptors there may be");
  }
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, streams + kOwnDescriptors);
  limit.rlim_cur = std::max(limit.rlim_cur, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return FailErrno(errno, "ask for {} descriptors", limit.rlim_cur);
  }
  if (limit.rlim_cur <= kOwnDescriptors) {
    return Fail(Code::kResourceExhausted, "ask for {} descriptors: there may be {} (RLIMIT_NOFILE)",
                streams + kOwnDescriptors, limit.rlim_cur);
  }
  return std::min<size_t>(streams, limit.rlim_cur - kOwnDescriptors);
}

Status EnterRoot(UniqueFd directory) {
  if (fchdir(directory.get()) != 0) {
    return FailErrno(errno, "enter the directory of descriptor {}", directory.get());
  }
  if (ChangeRoot()) {
    return {};
  }
  if (errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && ChangeRoot()) {
    return {};
  }
  return FailErrno(errno,
                   "change the root to the directory of descriptor {}: CAP_SYS_CHROOT, or "
                   "user namespaces for everybody, are needed",
                   directory.get());
}

Status GiveUpRights() {
  GANTRY_CHECK_OK(DropCapabilities());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return FailErrno(errno, "set no_new_privs");
  }
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return FailErrno(errno, "be no one's to trace");
  }
  Filter filter;
  for (const uint32_t number : kAllowed) {
    filter.Allow(number);
  }
  filter.AllowWith(SYS_socket, 0, ~0U, AF_UNIX);
  filter.AllowWith(SYS_mmap, 2, PROT_EXEC, 0);
  return filter.Apply();
}

}  // namespace gantry::vmm::vsock
