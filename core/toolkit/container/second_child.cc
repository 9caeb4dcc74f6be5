// SPDX-License-Identifier: Apache-2.0
//
// The container's process, from its birth to its program.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/toolkit/container/channel.h"
#include "core/toolkit/container/child.h"
#include "core/toolkit/container/console.h"
#include "core/toolkit/container/descriptors.h"
#include "core/toolkit/container/identity.h"
#include "core/toolkit/container/limits.h"
#include "core/toolkit/container/names.h"
#include "core/toolkit/container/program.h"

namespace gantry::container {
namespace {

// A session of its own, of processes and of keys: those of who started the maker are not its.
Status LeaveSession() {
  if (::setsid() < 0) {
    return FailErrno(errno, "make a session");
  }
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS) {
    return FailErrno(errno, "make a session keyring");
  }
  return {};
}

Status MakeConsole(Prepared& prepared, int channel) {
  const oci::ProcessSpec& process = prepared.request.spec.process;
  GANTRY_TRY(const Terminal terminal,
             OpenTerminal(prepared.proc.get(), process.console_size, process.user.uid));
  if (prepared.root != nullptr) {
    GANTRY_CHECK_OK(prepared.root->AttachConsole(terminal.replica.get()));
  }
  GANTRY_CHECK_OK(TakeTerminal(terminal.replica.get()));
  const int fd = terminal.replica.get();
  GANTRY_CHECK_OK(SetStreams({fd, fd, fd}));
  return Send(channel, Word::kConsole, terminal.master.get());
}

Status SetPersonality(const oci::LinuxSpec& spec) {
  if (!spec.personality) {
    return {};
  }
  const unsigned long wanted = spec.personality->domain == "LINUX32" ? PER_LINUX32 : PER_LINUX;
  if (::personality(wanted) < 0) {
    return FailErrno(errno, "set personality {}", spec.personality->domain);
  }
  return {};
}

Status MakeSurroundings(Prepared& prepared, int channel) {
  const oci::Spec& spec = prepared.request.spec;
  GANTRY_CHECK_OK(LeaveSession());
  GANTRY_CHECK_OK(SetNames(spec));
  if ((prepared.namespaces.fresh & CLONE_NEWNET) != 0) {
    GANTRY_CHECK_OK(RaiseLoopback());
  }
  if (prepared.root != nullptr) {
    GANTRY_CHECK_OK(prepared.root->Mount());
    GANTRY_CHECK_OK(prepared.root->Enter());
  }
  GANTRY_CHECK_OK(WriteSysctls(prepared.proc.get(), spec.linux_spec));
  if (spec.process.terminal) {
    GANTRY_CHECK_OK(MakeConsole(prepared, channel));
  }
  GANTRY_CHECK_OK(GiveStreams(spec.process.user.uid));
  if (prepared.root != nullptr) {
    GANTRY_CHECK_OK(MakeWorkingDirectory(spec.process.cwd));
    GANTRY_CHECK_OK(prepared.root->Seal());
  }
  return SetPersonality(spec.linux_spec);
}

// A program that is built in gets none, and never will: nothing but its execution would give a
// process of the container what the spec names.
oci::Capabilities SetsFor(const Prepared& prepared) {
  return prepared.request.program == nullptr ? CapabilitiesOf(prepared.request.spec.process)
                                             : oci::Capabilities();
}

bool MayGetNoRights(const Prepared& prepared) {
  return prepared.request.spec.process.no_new_privileges || prepared.request.program != nullptr;
}

// What the filter needs to be loaded, unless the process may get no rights anyhow. The execution
// takes it away again, without a system call that the filter would have to let through: it is
// neither inheritable nor ambient, and for root what counts is the bounding set.
// Source: capabilities(7), "Transformation of capabilities during execve()".
uint64_t KeptFor(const Prepared& prepared) {
  return prepared.filter && !MayGetNoRights(prepared) ? uint64_t{1} << CAP_SYS_ADMIN : 0;
}

Status BecomeProcess(const Prepared& prepared, const oci::Capabilities& sets) {
  const oci::ProcessSpec& process = prepared.request.spec.process;
  const bool executes = prepared.request.program == nullptr;
  if (executes) {
    GANTRY_CHECK_OK(SetLabels(prepared.proc.get(), process));
  }
  // As runc does: a directory that only who makes the container may enter is its cwd all the same.
  const Status entered = EnterWorkingDirectory(process.cwd);
  GANTRY_CHECK_OK(DropBounding(sets.bounding));
  GANTRY_CHECK_OK(BecomeUser(process.user));
  GANTRY_CHECK_OK(SetCapabilities(sets, KeptFor(prepared)));
  GANTRY_CHECK_OK(SetAmbient(sets.ambient));
  if (!executes) {
    GANTRY_CHECK_OK(ForgetKeptCapabilities());
    GANTRY_CHECK_OK(ChangeLabels(prepared.proc.get(), process));
  }
  if (MayGetNoRights(prepared)) {
    GANTRY_CHECK_OK(SetNoNewPrivileges());
  }
  return entered ? Status() : EnterWorkingDirectory(process.cwd);
}

std::vector<std::string> EnvironmentOf(const oci::ProcessSpec& process) {
  std::vector<std::string> env = process.env;
  if (!std::ranges::any_of(env, [](std::string_view one) { return one.starts_with("HOME="); })) {
    env.push_back("HOME=" + HomeOf(process.user.uid));
  }
  return env;
}

Status WaitAtGate(const Prepared& prepared, int channel) {
  const Resources left = LowerLimits(prepared.request.spec.process);
  GANTRY_CHECK_OK(Send(channel, Word::kReady, -1, left));
  GANTRY_TRY(const Message go, Await(channel, Word::kGo));
  static_cast<void>(go);
  return {};
}

// Once it is loaded little is let through.
Status LoadFilter(const Prepared& prepared, int channel) {
  UniqueFd listener;
  if (prepared.filter) {
    GANTRY_TRY(listener, LoadSeccomp(*prepared.filter));
  }
  return listener ? Send(channel, Word::kListener, listener.get()) : Status();
}

Status ExecuteAtGate(const Prepared& prepared, int& channel) {
  const oci::ProcessSpec& process = prepared.request.spec.process;
  GANTRY_TRY(std::string file, FindProgram(process));
  const Command command(std::move(file), process.args, EnvironmentOf(process));
  GANTRY_TRY(channel, MoveOutOfTheWay(channel, prepared.request.passed_on.size()));
  GANTRY_CHECK_OK(PassOn(prepared.request.passed_on));
  // From here on limits may leave nothing to work with.
  GANTRY_CHECK_OK(WaitAtGate(prepared, channel));
  GANTRY_CHECK_OK(LoadFilter(prepared, channel));
  return command.Execute();
}

// The descriptors of the program, where they are by now; all that an execution closes is closed.
Result<std::vector<int>> CloseAsExecution(const Prepared& prepared, int& channel) {
  const std::vector<int>& passed_on = prepared.request.passed_on;
  std::vector<int> its = prepared.request.program->Descriptors();
  GANTRY_TRY(channel, MoveOutOfTheWay(channel, passed_on.size()));
  for (int& fd : its) {
    GANTRY_TRY(fd, MoveOutOfTheWay(fd, passed_on.size()));
  }
  GANTRY_CHECK_OK(PassOn(passed_on));
  std::vector<int> kept = its;
  kept.push_back(channel);
  for (size_t i = 0; i < passed_on.size(); ++i) {
    kept.push_back(STDERR_FILENO + 1 + static_cast<int>(i));
  }
  GANTRY_CHECK_OK(CloseAllBut(std::move(kept)));
  return its;
}

Status LoadFilterOfProgram(const Prepared& prepared) {
  AfterFilter after;
  if (prepared.filter) {
    after.seccomp_flags = prepared.filter->flags;
  }
  SeccompFilter own;
  GANTRY_TRY(own.program, prepared.request.program->Filter(after));
  if (!own.program.empty()) {
    GANTRY_TRY(const UniqueFd none, LoadSeccomp(own, "the program"));
  }
  return {};
}

// What only the making has needed an execution would have given back, and this process stays as
// long as the container. Of the spec the limits are still to be set.
void GiveBackHeap(Prepared& prepared) {
  oci::Spec spec = std::exchange(prepared.request.spec, {});
  prepared.request.spec.process.rlimits = std::move(spec.process.rlimits);
  spec = {};
  ::malloc_trim(0);
}

// What lies below this function's own frame, down to the end of the thread's stack: what is below
// that may be anybody's memory. On another stack than the thread's it is not known where it ends.
__attribute__((noinline)) void GiveBackStack(std::span<char> stack) {
  constexpr uintptr_t kMost = uintptr_t{128} << 10;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  char* const here = static_cast<char*>(__builtin_frame_address(0));
  const auto at = reinterpret_cast<uintptr_t>(here);
  const auto lowest = reinterpret_cast<uintptr_t>(stack.data());
  if (at < lowest || at - lowest >= stack.size()) {
    return;
  }
  const uintptr_t end = at - at % page - page;
  const uintptr_t begin = std::max(end - kMost, (lowest + page - 1) / page * page);
  if (begin < end) {
    // What of it is not mapped is an error, and the rest is given back all the same.
    ::madvise(here - (at - begin), end - begin, MADV_DONTNEED);
  }
}

// Its end of the channel is closed as an execution would close it: by then nothing of the container
// has been run. A sanitizer that looks at an object before its method is called makes system calls
// for that, which the program's filter need not let through.
__attribute__((no_sanitize("vptr"))) Status CallAtGate(Prepared& prepared, int& channel) {
  ProgramStart start{.spec = prepared.request.spec, .descriptors = {}};
  GANTRY_TRY(start.descriptors, CloseAsExecution(prepared, channel));
  GANTRY_CHECK_OK(prepared.request.program->Prepare(start));
  GANTRY_CHECK_OK(LoadFilterOfProgram(prepared));
  GiveBackHeap(prepared);
  GiveBackStack(prepared.stack);
  GANTRY_CHECK_OK(WaitAtGate(prepared, channel));
  GANTRY_CHECK_OK(LoadFilter(prepared, channel));
  ::close(channel);
  ::_exit(prepared.request.program->Run());
}

// `channel`: where it is by now, for who says how this failed.
Status BecomeContainer(Prepared& prepared, int& channel) {
  // Nothing of it is heard before the maker knows whose it is.
  GANTRY_TRY(const Message known, Await(channel, Word::kGo));
  static_cast<void>(known);
  const oci::Capabilities sets = SetsFor(prepared);
  GANTRY_CHECK_OK(MakeSurroundings(prepared, channel));
  GANTRY_CHECK_OK(BecomeProcess(prepared, sets));
  // The gate may stay closed for long, and others may be in these namespaces.
  prepared.proc.reset();
  return prepared.request.program == nullptr ? ExecuteAtGate(prepared, channel)
                                             : CallAtGate(prepared, channel);
}

}  // namespace

void RunSecondChild(Prepared& prepared, int channel) {
  const Status status = BecomeContainer(prepared, channel);
  IgnoreError(SendError(channel, status.error()), "a maker that is gone needs no answer");
  ::_exit(1);
}

}  // namespace gantry::container
