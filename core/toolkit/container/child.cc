// SPDX-License-Identifier: Apache-2.0
//
// The order here is what keeps a container from its maker. The first child gives up what it has of
// the maker before it touches a namespace that somebody else may be in. The second child has to do
// with the container's files from `Mount` on; from then on it opens files of the kernel only by the
// maker's /proc.
#include "core/toolkit/container/child.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/toolkit/container/channel.h"
#include "core/toolkit/container/descriptors.h"
#include "core/toolkit/container/limits.h"

namespace gantry::container {
namespace {

// A signal that the maker ignores would be ignored by the container.
void ResetSignals() {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    ::sigaction(signal, &usual, nullptr);  // Those that cannot be set are at their default anyway.
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread.
}

Status HideFromOthers() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return FailErrno(errno, "be nobody's to look into");
  }
  return {};
}

Status LeaveMaker(const Prepared& prepared, int channel) {
  ResetSignals();
  GANTRY_CHECK_OK(HideFromOthers());
  const auto& streams = prepared.request.streams;
  const int wanted[3] = {streams[0], streams[1], streams[2]};
  const int none[3] = {-1, -1, -1};
  GANTRY_CHECK_OK(SetStreams(prepared.request.spec.process.terminal ? none : wanted));
  std::vector<int> kept = prepared.request.passed_on;
  if (prepared.request.program != nullptr) {
    const std::vector<int> its = prepared.request.program->Descriptors();
    kept.insert(kept.end(), its.begin(), its.end());
  }
  kept.push_back(channel);
  kept.push_back(prepared.proc.get());
  for (const JoinedNamespace& space : prepared.namespaces.joined) {
    kept.push_back(space.fd.get());
  }
  return CloseAllBut(std::move(kept));
}

Status Unshare(int flags, std::string_view what) {
  if (flags != 0 && ::unshare(flags) != 0) {
    return FailErrno(errno, "make {} ({:#x})", what, flags);
  }
  return {};
}

Status AskMaker(int channel, Word word) {
  GANTRY_CHECK_OK(Send(channel, word));
  GANTRY_TRY(const Message answer, Await(channel, Word::kGo));
  static_cast<void>(answer);
  return {};
}

Status EnterNamespaces(Prepared& prepared, int channel) {
  const int fresh = prepared.namespaces.fresh;
  GANTRY_CHECK_OK(JoinNamespaces(prepared.namespaces.joined));
  prepared.namespaces.joined.clear();
  if ((fresh & CLONE_NEWUSER) != 0) {
    GANTRY_CHECK_OK(Unshare(CLONE_NEWUSER, "a user namespace"));
    GANTRY_CHECK_OK(AskMaker(channel, Word::kMapIds));
    GANTRY_CHECK_OK(BecomeRoot());
  }
  // New credentials may have made it visible again, as /proc/sys/fs/suid_dumpable has it.
  GANTRY_CHECK_OK(HideFromOthers());
  GANTRY_CHECK_OK(Unshare(fresh & ~CLONE_NEWUSER, "namespaces"));
  if ((fresh & CLONE_NEWTIME) != 0) {
    GANTRY_CHECK_OK(AskMaker(channel, Word::kSetClocks));
  }
  return {};
}

// With the maker's rights: in a user namespace they may be of nobody. Of one that is joined the
// second child has to do what it can.
Status GiveStreamsToUser(const Prepared& prepared) {
  const oci::Spec& spec = prepared.request.spec;
  const bool fresh = (prepared.namespaces.fresh & CLONE_NEWUSER) != 0;
  if (spec.process.terminal || (!fresh && prepared.namespaces.has(CLONE_NEWUSER))) {
    return {};
  }
  const auto owner = fresh ? HostIdOf(spec.process.user.uid, spec.linux_spec.uid_mappings)
                           : std::optional(spec.process.user.uid);
  return owner ? GiveStreams(*owner) : Status();
}

Status BearSecondChild(Prepared& prepared, int channel) {
  if (prepared.joined != nullptr) {
    GANTRY_CHECK_OK(EnterCgroups(*prepared.joined));
  }
  GANTRY_CHECK_OK(LeaveMaker(prepared, channel));
  GANTRY_CHECK_OK(GiveStreamsToUser(prepared));
  GANTRY_CHECK_OK(SetOomScore(prepared.proc.get(), prepared.request.spec.process));
  if (prepared.root != nullptr) {
    GANTRY_CHECK_OK(prepared.root->Open());
  }
  GANTRY_CHECK_OK(EnterNamespaces(prepared, channel));
  UniqueFd pidfd;
  GANTRY_TRY(const pid_t pid, CloneProcess(CLONE_PARENT, &pidfd));
  if (pid == 0) {
    RunSecondChild(prepared, channel);
  }
  return Send(channel, Word::kBorn, pidfd.get(), pid);
}

}  // namespace

Result<pid_t> CloneProcess(uint64_t flags, UniqueFd* pidfd) {
  int fd = -1;
  clone_args arguments{};
  arguments.flags = flags | (pidfd == nullptr ? 0 : CLONE_PIDFD);
  arguments.pidfd = reinterpret_cast<uint64_t>(&fd);
  // A sibling's is that of who makes it.
  arguments.exit_signal = (flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (pid < 0) {
    return FailErrno(errno, "make a process");
  }
  if (pid > 0 && pidfd != nullptr) {
    pidfd->reset(fd);
  }
  return static_cast<pid_t>(pid);
}

void RunFirstChild(Prepared& prepared, int channel) {
  if (const Status status = BearSecondChild(prepared, channel); !status) {
    IgnoreError(SendError(channel, status.error()), "a maker that is gone needs no answer");
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace gantry::container
