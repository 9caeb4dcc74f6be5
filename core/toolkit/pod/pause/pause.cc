// SPDX-License-Identifier: Apache-2.0
//
// Holds the namespaces of a pod that has no pause container, and does nothing else: it
// reaps what is left to it and ends on SIGTERM or SIGINT.
//
//     gantry-pause [-i] [-u] [-p] [-h HOSTNAME] [-s PATH=VALUE]...
//
// The keeper starts it, in the pod's user and network namespaces where it has its own. It
// makes the others, -i ipc, -u uts, -p pid; sets the uts namespace's name; writes VALUE
// into PATH below /proc/sys. Then it gives up all rights that it has, since a container
// may reach it (confine.h). Then it says on descriptor 3, a socket to the engine, either
// `PID\n`, its own as the host sees it, or `!STEP ERRNO\n`, and waits for a byte: at the
// socket's end instead, which is the engine's, it ends without a trace.
//
// Freestanding: no C library, no stack beyond a page, so that a thousand of them weigh
// as little as they do.
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>

#include <gantry/toolkit/freestanding/kernel.h>
#include <gantry/toolkit/freestanding/start.h>

#include "core/toolkit/pod/pause/confine.h"
#include "core/toolkit/pod/pause/engine.h"

namespace gantry::pause {

using freestanding::kAtCwd;
using freestanding::kErrnoIntr;
using freestanding::kErrnoInvalid;
using freestanding::LengthOf;

namespace {

constexpr int kSignalSetSize = 8;
constexpr long kOpenForWriting = 1;  // O_WRONLY
constexpr long kNoWait = 1;          // WNOHANG

/// Folders of /proc/sys with what a pod may have of its own.
constexpr const char* kFolders[] = {"/proc/sys/net/", "/proc/sys/fs/mqueue/", "/proc/sys/kernel/"};
constexpr unsigned long kSysctlsAt = 10;  // Behind /proc/sys/

/// Opens the file for writing: below one of those folders, with no way out of it.
long OpenSysctl(const char* path) {
  for (const char* folder : kFolders) {
    const char* rest = path;
    const char* begin = folder + kSysctlsAt;
    while (*begin != '\0' && *begin == *rest) {
      ++begin;
      ++rest;
    }
    if (*begin != '\0') {
      continue;
    }
    const long dir = Require(folder, Call(SYS_openat, kAtCwd, Address(folder), 0));
    open_how how = {};
    how.flags = kOpenForWriting;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    const long file = Call(SYS_openat2, dir, Address(rest), Address(&how), sizeof(how));
    Call(SYS_close, dir);
    return file;
  }
  return kErrnoInvalid;
}

/// `PATH=VALUE`, PATH from /proc/sys on.
void WriteSysctl(char* setting) {
  char* value = setting;
  while (*value != '=' && *value != '\0') {
    ++value;
  }
  if (*value == '\0') {
    Fail(setting, kErrnoInvalid);
  }
  *value++ = '\0';
  const long file = Require(setting, OpenSysctl(setting));
  Require(setting, Call(SYS_write, file, Address(value), static_cast<long>(LengthOf(value))));
  Call(SYS_close, file);
}

/// Waits until the engine has taken note of the pid. It has ended: so does this.
void AwaitEngine() {
  char byte = 0;
  long got = 0;
  do {
    got = Call(SYS_read, kEngine, Address(&byte), 1);
  } while (got == kErrnoIntr);
  if (got != 1) {
    End(1);
  }
}

[[noreturn]] void Hold() {
  Call(SYS_close, kEngine);
  constexpr unsigned long kTerm = 1UL << (SIGTERM - 1);
  constexpr unsigned long kInt = 1UL << (SIGINT - 1);
  constexpr unsigned long kChild = 1UL << (SIGCHLD - 1);
  const unsigned long waited = kTerm | kInt | kChild;
  for (;;) {
    const long signal = Call(SYS_rt_sigtimedwait, Address(&waited), 0, 0, kSignalSetSize);
    if (signal == SIGTERM || signal == SIGINT) {
      End(0);
    }
    while (Call(SYS_wait4, -1, 0, kNoWait, 0) > 0) {
    }
  }
}

/// In a pid namespace of its own, which is for children, the holder is the first of them. This one
/// goes when the child has let go of it, and the keeper takes the child.
[[noreturn]] void HoldPids() {
  int ends[2] = {-1, -1};
  Require("pipe2", Call(SYS_pipe2, Address(ends), 0));
  const long child = Require("clone", Call(SYS_clone, SIGCHLD));
  if (child == 0) {
    // Until the engine knows of it, it must not outlive the one that the engine knows.
    Call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    Call(SYS_close, ends[0]);
    AwaitEngine();
    Call(SYS_prctl, PR_SET_PDEATHSIG, 0);
    Call(SYS_close, ends[1]);
    Hold();
  }
  Call(SYS_close, ends[1]);
  Line line;
  line.Add(child);
  line.Add("\n");
  line.Send();
  Call(SYS_close, kEngine);
  char none = 0;
  while (Call(SYS_read, ends[0], Address(&none), 1) == kErrnoIntr) {
  }
  End(0);
}

void SetUp(char** arguments, bool& pids) {
  const char* name = nullptr;
  long made = 0;
  char** settings = arguments;
  for (char** one = arguments; *one != nullptr; ++one) {
    switch ((*one)[1]) {
      case 'i':
        made |= CLONE_NEWIPC;
        break;
      case 'u':
        made |= CLONE_NEWUTS;
        break;
      case 'p':
        pids = true;
        made |= CLONE_NEWPID;
        break;
      case 'h':
        name = *++one;
        break;
      case 's':
        *settings++ = *++one;
        break;
      default:
        Fail(*one, kErrnoInvalid);
    }
  }
  *settings = nullptr;
  if (made != 0) {
    Require("unshare", Call(SYS_unshare, made));
  }
  if (name != nullptr) {
    Require("sethostname", Call(SYS_sethostname, Address(name), static_cast<long>(LengthOf(name))));
  }
  for (; *arguments != nullptr; ++arguments) {
    WriteSysctl(*arguments);
  }
}

}  // namespace

/// With all arguments but its name.
[[noreturn]] void Begin(char** arguments) {
  const unsigned long all = ~0UL;
  Call(SYS_rt_sigprocmask, 0, Address(&all), 0, kSignalSetSize);
  bool pids = false;
  SetUp(arguments, pids);
  Confine();
  if (pids) {
    HoldPids();
  }
  Line line;
  line.Add(Call(SYS_getpid));
  line.Add("\n");
  line.Send();
  AwaitEngine();
  Hold();
}

}  // namespace gantry::pause

[[noreturn]] void gantry::freestanding::Run(long, char** arguments) {
  gantry::pause::Begin(arguments + 1);
}
