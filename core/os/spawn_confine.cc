// SPDX-License-Identifier: Apache-2.0
//
// SpawnSteps: what a child gives up before its program runs.
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/format.h>

#include "core/os/spawn_steps.h"

namespace gantry::os {
namespace {

constexpr int kCapabilities = 64;
constexpr int kHalf = 32;

bool Has(uint64_t set, int one) { return (set >> one & 1) != 0; }

/// Of those that this kernel knows.
int DropBounding(uint64_t keep) {
  for (int one = 0; one < kCapabilities; ++one) {
    const int in = prctl(PR_CAPBSET_READ, one, 0, 0, 0);
    if (in < 0) {
      break;
    }
    if (in == 1 && !Has(keep, one) && prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0) {
      return errno;
    }
  }
  return 0;
}

/// All three sets are what it is permitted of `keep`, which is left in `keep`.
int SetCapabilities(uint64_t& keep) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[2]{};
  if (syscall(SYS_capget, &header, sets) != 0) {
    return errno;
  }
  keep &= sets[0].permitted | uint64_t{sets[1].permitted} << kHalf;
  for (int half = 0; half < 2; ++half) {
    const auto kept = static_cast<uint32_t>(keep >> (half * kHalf));
    sets[half] = {.effective = kept, .permitted = kept, .inheritable = kept};
  }
  return ErrnoOf(syscall(SYS_capset, &header, sets));
}

/// What execve leaves to who is not root. Source: capabilities(7).
int RaiseAmbient(uint64_t keep) {
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return errno;
  }
  for (int one = 0; one < kCapabilities; ++one) {
    if (Has(keep, one) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0) != 0) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void SpawnSteps::AddMounts() {
  if (request_.propagation != 0) {
    Add("keep the mounts from the node's", [this] {
      return ErrnoOf(::mount(nullptr, "/", nullptr, MS_REC | request_.propagation, nullptr));
    });
  }
}

void SpawnSteps::AddBounding() {
  if (!request_.capabilities) {
    return;
  }
  Add("drop capabilities from the bounding set",
      [this] { return DropBounding(*request_.capabilities); });
  Add("keep capabilities as another user",
      [] { return ErrnoOf(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)); });
}

void SpawnSteps::AddCapabilities() {
  if (!request_.capabilities) {
    return;
  }
  Add("set the capabilities", [this] {
    uint64_t keep = *request_.capabilities;
    const int failed = SetCapabilities(keep);
    return failed != 0 ? failed : RaiseAmbient(keep);
  });
}

void SpawnSteps::AddFilter() {
  Add("unblock signals", [] {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    return 0;
  });
  if (request_.seccomp.empty()) {
    return;
  }
  // The kernel does not write to it.
  filter_ = {.len = static_cast<unsigned short>(request_.seccomp.size()),
             .filter = const_cast<sock_filter*>(request_.seccomp.data())};
  filter_step_ = steps_.size();
  Add("set the seccomp filter",
      [this] { return ErrnoOf(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter_, 0, 0)); });
}

}  // namespace gantry::os
