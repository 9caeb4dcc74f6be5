// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/make_template.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>
#include <gantry/toolkit/process/rights.h>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/programs.h"
#include "plugins/vmm/template/new_vm.h"

namespace gantry::vmm {
namespace {

/// Of the agent, when the guest's modules are loaded: guest/modules.cc.
constexpr std::string_view kReady = "gantry-agent: ready";
/// Beside the memory: what the VMM writes of devices, and its tables.
constexpr uint64_t kStateBytes = 64 * kMiB;
constexpr size_t kConsoleBytes = size_t{1} << 20;

/// Waits until the guest has said that it is ready.
Status AwaitReady(const NewVm& made, const ReadyVm& vm, std::string_view vmm, Deadline deadline) {
  const std::string console = vm.directory.console();
  const UniqueFd changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes || inotify_add_watch(changes.get(), console.c_str(), IN_MODIFY) < 0) {
    return FailErrno(errno, "watch '{}'", console);
  }
  const auto ended = OpenPidfd(vm.vmm->pid());
  if (!ended) {
    return std::unexpected(made.Ended());
  }
  for (;;) {
    GANTRY_TRY(const std::string said, ReadTail(console, kConsoleBytes));
    if (said.contains(kReady)) {
      return {};
    }
    std::array<pollfd, 2> two = {{{.fd = changes.get(), .events = POLLIN, .revents = 0},
                                  {.fd = ended->get(), .events = POLLIN, .revents = 0}}};
    if (poll(two.data(), two.size(), PollTimeout(deadline)) == 0) {
      return std::unexpected(made.WithWords(BootTooSlow(vmm, console)));
    }
    if (two[1].revents != 0) {
      return std::unexpected(made.Ended());
    }
    std::array<char, 4096> told{};
    while (read(changes.get(), told.data(), told.size()) > 0) {
    }
  }
}

Status WriteDown(NewVm& made, const std::string& place, Deadline deadline) {
  GANTRY_CHECK_OK(made.hypervisor().Pause(deadline));
  const Snapshot snapshot{.directory = place, .memory = Snapshot::Memory::kSaved};
  GANTRY_CHECK_OK(made.hypervisor().TakeSnapshot(snapshot, deadline));
  // Nobody has the file open any more.
  return EndProcess(made.vm().vmm.get(), kProgramEnds);
}

Status Fill(NewVm& made, const MachineRequest& request, const std::string& place,
            Deadline deadline) {
  GANTRY_CHECK_OK(made.Run("", place, deadline));
  if (Status booted = made.hypervisor().Boot(deadline); !booted) {
    return std::unexpected(made.WithWords(std::move(booted).error()));
  }
  GANTRY_CHECK_OK(AwaitReady(made, made.vm(), VmmName(request.options.vmm), deadline));
  return WriteDown(made, place, deadline);
}

}  // namespace

Result<std::string> MakeTemplate(SandboxContext& context, const MachineMeans& means,
                                 const MachineRequest& request, Accelerator accelerator,
                                 const TemplateStore& store, const std::string& key) {
  const Deadline deadline = std::chrono::steady_clock::now() + request.options.boot_timeout;
  NewVm made(context, means, request, accelerator);
  GANTRY_CHECK_OK(made.MakePlace());
  GANTRY_TRY(std::string place,
             store.Begin(key, request.size.memory_bytes + kStateBytes, made.vm().user));
  Status filled = Fill(made, request, place, deadline);
  if (filled) {
    filled = store.Finish(key);
  }
  if (!filled) {
    IgnoreError(store.Remove(key), "the first error counts");
    return std::unexpected(std::move(filled).error().Within("make a template"));
  }
  return place;
}

}  // namespace gantry::vmm
