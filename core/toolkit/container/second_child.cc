// SPDX-License-Identifier: Apache-2.0
//
// The container's process, from its birth to its program.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "core/toolkit/container/channel.h"
#include "core/toolkit/container/child.h"
#include "core/toolkit/container/console.h"
#include "core/toolkit/container/descriptors.h"
#include "core/toolkit/container/identity.h"
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

Status MakeConsole(Plan& plan, int channel) {
  const oci::ProcessSpec& process = plan.request.spec.process;
  GANTRY_TRY(const Terminal terminal,
             OpenTerminal(plan.proc.get(), process.console_size, process.user.uid));
  if (plan.root != nullptr) {
    GANTRY_CHECK_OK(plan.root->AttachConsole(terminal.replica.get()));
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

Status MakeSurroundings(Plan& plan, int channel) {
  const oci::Spec& spec = plan.request.spec;
  GANTRY_CHECK_OK(LeaveSession());
  GANTRY_CHECK_OK(SetNames(spec));
  if ((plan.namespaces.fresh & CLONE_NEWNET) != 0) {
    GANTRY_CHECK_OK(RaiseLoopback());
  }
  if (plan.root != nullptr) {
    GANTRY_CHECK_OK(plan.root->Mount());
    GANTRY_CHECK_OK(plan.root->Enter());
  }
  GANTRY_CHECK_OK(WriteSysctls(plan.proc.get(), spec.linux_spec));
  if (spec.process.terminal) {
    GANTRY_CHECK_OK(MakeConsole(plan, channel));
  }
  GANTRY_CHECK_OK(GiveStreams(spec.process.user.uid));
  if (plan.root != nullptr) {
    GANTRY_CHECK_OK(MakeWorkingDirectory(spec.process.cwd));
    GANTRY_CHECK_OK(plan.root->Seal());
  }
  return SetPersonality(spec.linux_spec);
}

// What the filter needs to be loaded, unless the process may get no rights anyhow. The execution
// takes it away again, without a system call that the filter would have to let through: it is
// neither inheritable nor ambient, and for root what counts is the bounding set.
// Source: capabilities(7), "Transformation of capabilities during execve()".
uint64_t KeptFor(const Plan& plan) {
  const bool needed = plan.filter && !plan.request.spec.process.no_new_privileges;
  return needed ? uint64_t{1} << CAP_SYS_ADMIN : 0;
}

Status BecomeProcess(const Plan& plan, const oci::Capabilities& sets) {
  const oci::ProcessSpec& process = plan.request.spec.process;
  GANTRY_CHECK_OK(SetLabels(plan.proc.get(), process));
  // As runc does: a directory that only who makes the container may enter is its cwd all the same.
  const Status entered = EnterWorkingDirectory(process.cwd);
  GANTRY_CHECK_OK(DropBounding(sets.bounding));
  GANTRY_CHECK_OK(BecomeUser(process.user));
  GANTRY_CHECK_OK(SetCapabilities(sets, KeptFor(plan)));
  GANTRY_CHECK_OK(SetAmbient(sets.ambient));
  if (process.no_new_privileges) {
    GANTRY_CHECK_OK(SetNoNewPrivileges());
  }
  return entered ? Status() : EnterWorkingDirectory(process.cwd);
}

// `channel`: where it is by now, for who says how this failed.
Status ExecuteAtGate(Plan& plan, int& channel) {
  const oci::ProcessSpec& process = plan.request.spec.process;
  // Nothing of it is heard before the maker knows whose it is.
  GANTRY_TRY(const Message known, Await(channel, Word::kGo));
  static_cast<void>(known);
  const oci::Capabilities sets = CapabilitiesOf(process);
  GANTRY_CHECK_OK(MakeSurroundings(plan, channel));
  GANTRY_CHECK_OK(BecomeProcess(plan, sets));
  // The gate may stay closed for long, and others may be in these namespaces.
  plan.proc.reset();
  GANTRY_TRY(std::string file, FindProgram(process));
  std::vector<std::string> env = process.env;
  if (!std::ranges::any_of(env, [](std::string_view one) { return one.starts_with("HOME="); })) {
    env.push_back("HOME=" + HomeOf(process.user.uid));
  }
  const Command command(std::move(file), process.args, std::move(env));
  GANTRY_TRY(channel, MoveOutOfTheWay(channel, plan.request.passed_on.size()));
  GANTRY_CHECK_OK(PassOn(plan.request.passed_on));
  GANTRY_CHECK_OK(Send(channel, Word::kReady));
  GANTRY_TRY(const Message go, Await(channel, Word::kGo));
  static_cast<void>(go);
  // From here on limits may leave nothing to work with, and the filter lets little through.
  UniqueFd listener;
  if (plan.filter) {
    GANTRY_TRY(listener, LoadSeccomp(*plan.filter));
  }
  if (listener) {
    GANTRY_CHECK_OK(Send(channel, Word::kListener, listener.get()));
  }
  return command.Execute();
}

}  // namespace

void RunSecondChild(Plan& plan, int channel) {
  const Status status = ExecuteAtGate(plan, channel);
  IgnoreError(SendError(channel, status.error()), "a maker that is gone needs no answer");
  ::_exit(1);
}

}  // namespace gantry::container
