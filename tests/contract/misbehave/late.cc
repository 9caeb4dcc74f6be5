// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/misbehave/late.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <utility>

namespace gantry::misbehave {
namespace {

UniqueFd NewSocket() {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return {};
  }
  const UniqueFd other(ends[1]);
  return UniqueFd(ends[0]);
}

void CallProcess(ProcessContext& process) {
  process.Exited({3, 1});
  process.SetPid(HostPid{4321});
  IgnoreError(process.TakeStdio(), "it must only return");
  IgnoreError(process.OpenConsole(ConsoleKind::kForeign), "it must only return");
  IgnoreError(process.AttachConsole(NewSocket()), "it must only return");
  IgnoreError(process.AttachStream(Stream::kStdout, NewSocket()), "it must only return");
}

void CallContainer(ContainerContext& container) {
  container.OutOfMemory();
  container.UseStateDirs({"/"});
  IgnoreError(container.Save("late"), "it must only return");
  IgnoreError(container.MakeCgroups(CgroupDevices::kOfSpec), "it must only return");
}

void CallSandbox(SandboxContext& sandbox) {
  SpawnRequest request;
  request.argv = {"/bin/sleep", "31536777"};
  IgnoreError(sandbox.Spawn(std::move(request)), "it must only return");
  IgnoreError(sandbox.Adopt(HostPid{1}), "it must only return");
  sandbox.FindSpawned("x");
  const UniqueFd fd = NewSocket();
  IgnoreError(sandbox.WatchReadable(fd.get(), [] {}), "it must only return");
  sandbox.SetPid(HostPid{4321});
  sandbox.Exited({3, 1});
  IgnoreError(sandbox.Store("late", fd), "it must only return");
  IgnoreError(sandbox.Take("late"), "it must only return");
  sandbox.Drop("late");
  IgnoreError(sandbox.Save("late"), "it must only return");
  sandbox.Log(LogLevel::kInfo, "a late line");
  sandbox.Count("late");
}

}  // namespace

void CallLate(const Mischief& mischief, SandboxContext& sandbox, ContainerContext& container,
              ProcessContext& process) {
  std::thread([mischief, &sandbox, &container, &process] {
    mischief.AwaitGate();
    CallProcess(process);
    CallContainer(container);
    CallSandbox(sandbox);
    const UniqueFd made(open(mischief.done.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }).detach();
}

}  // namespace gantry::misbehave
