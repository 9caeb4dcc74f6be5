// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/identity.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/toolkit/container/proc_files.h"

namespace gantry::container {
namespace {

// The kernel's sets have two words of 32.
constexpr int kWord = 32;
constexpr int kMost = 64;

uint32_t HalfOf(uint64_t mask, int half) { return static_cast<uint32_t>(mask >> (half * kWord)); }

// The capabilities that this kernel knows.
uint64_t KnownCapabilities() {
  uint64_t known = 0;
  for (int one = 0; one < kMost && ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one) {
    known |= uint64_t{1} << one;
  }
  return known;
}

Status WriteLabel(int proc, const std::string& file, const std::string& text,
                  std::string_view what) {
  Status status = WriteProcFile(proc, file, text);
  if (!status && (status.error().sys_errno == ENOENT || status.error().sys_errno == EINVAL)) {
    return Fail(Code::kFailedPrecondition, "set {}: not known to this kernel: {}", what,
                status.error().message);
  }
  return status;
}

// `name`: of the kernel's attribute of a process; `command`: what AppArmor calls the change.
Status WriteLabels(int proc, const oci::ProcessSpec& process, const std::string& name,
                   const std::string& command) {
  if (!process.confined()) {
    return {};
  }
  GANTRY_TRY(const std::string folder, OwnFolder(proc));
  if (!process.apparmor_profile.empty()) {
    // The file of AppArmor alone is younger than the one that all modules share (Linux 5.8).
    std::string file = folder + "/attr/apparmor/" + name;
    if (!OpenProcFile(proc, file, O_PATH)) {
      file = folder + "/attr/" + name;
    }
    GANTRY_CHECK_OK(WriteLabel(proc, file, command + " " + process.apparmor_profile,
                               "AppArmor profile '" + process.apparmor_profile + "'"));
  }
  if (!process.selinux_label.empty()) {
    GANTRY_CHECK_OK(WriteLabel(proc, folder + "/attr/" + name, process.selinux_label,
                               "SELinux label '" + process.selinux_label + "'"));
  }
  return {};
}

}  // namespace

Status SetLabels(int proc, const oci::ProcessSpec& process) {
  return WriteLabels(proc, process, "exec", "exec");
}

Status ChangeLabels(int proc, const oci::ProcessSpec& process) {
  return WriteLabels(proc, process, "current", "changeprofile");
}

oci::Capabilities CapabilitiesOf(const oci::ProcessSpec& process) {
  const uint64_t known = KnownCapabilities();
  oci::Capabilities sets = process.capabilities.value_or(oci::Capabilities());
  for (uint64_t* const set :
       {&sets.bounding, &sets.effective, &sets.permitted, &sets.inheritable, &sets.ambient}) {
    *set &= known;
  }
  return sets;
}

Status DropBounding(uint64_t bounding) {
  const uint64_t dropped = KnownCapabilities() & ~bounding;
  for (int one = 0; one < kMost; ++one) {
    if ((dropped >> one & 1) != 0 && ::prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0) {
      return FailErrno(errno, "drop capability {} from the bounding set", one);
    }
  }
  return {};
}

Status BecomeUser(const oci::User& user) {
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) {
    return FailErrno(errno, "keep the capabilities");
  }
  // The system calls themselves: the C library's functions change all threads, and there is one.
  const auto groups = static_cast<long>(user.additional_gids.size());
  const long set = ::syscall(SYS_setgroups, groups, user.additional_gids.data());
  // In a user namespace that denies it there is nothing to drop that its maker did not let in.
  if (set != 0 && (errno != EPERM || groups > 0)) {
    return FailErrno(errno, "set {} additional groups", groups);
  }
  if (::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) {
    return FailErrno(errno, "become group {}", user.gid);
  }
  if (::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) {
    return FailErrno(errno, "become user {}", user.uid);
  }
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return FailErrno(errno, "be nobody's to look into");
  }
  ::umask(static_cast<mode_t>(user.umask.value_or(022)) & 0777);
  return {};
}

Status SetCapabilities(const oci::Capabilities& sets, uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int half = 0; half < 2; ++half) {
    data[half].effective = HalfOf(sets.effective | kept, half);
    data[half].permitted = HalfOf(sets.permitted | kept, half);
    data[half].inheritable = HalfOf(sets.inheritable, half);
  }
  if (::syscall(SYS_capset, &header, data) != 0) {
    return FailErrno(errno,
                     "set the capabilities: effective {:#x} has to be within permitted {:#x}, and "
                     "that within what the maker has",
                     sets.effective, sets.permitted);
  }
  return {};
}

Status SetAmbient(uint64_t ambient) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return FailErrno(errno, "clear the ambient capabilities");
  }
  for (int one = 0; one < kMost; ++one) {
    const bool wanted = (ambient >> one & 1) != 0;
    if (wanted && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0) != 0) {
      return FailErrno(errno, "raise ambient capability {}: it has to be inheritable and permitted",
                       one);
    }
  }
  return {};
}

Status ForgetKeptCapabilities() {
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) {
    return FailErrno(errno, "keep no capabilities");
  }
  return {};
}

Status SetNoNewPrivileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return FailErrno(errno, "set no_new_privs");
  }
  return {};
}

}  // namespace gantry::container
