// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/restore_vm.h"

#include <poll.h>

#include <array>
#include <optional>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/vmm/agent/newcomers.h"
#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/template/new_vm.h"

namespace gantry::vmm {
namespace {

Result<Greeted> AwaitHello(const NewVm& made, const ReadyVm& vm, UniqueFd listener,
                           std::string_view vmm, Deadline deadline) {
  const auto ended = OpenPidfd(vm.vmm->pid());
  if (!ended) {
    return std::unexpected(made.Ended());
  }
  GANTRY_TRY(const auto newcomers, Newcomers::On(std::move(listener)));
  for (;;) {
    std::array<pollfd, 2> two = {{{.fd = newcomers->fd(), .events = POLLIN, .revents = 0},
                                  {.fd = ended->get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(two.data(), two.size(), PollTimeout(deadline));
    if (ready == 0) {
      return std::unexpected(made.WithWords(BootTooSlow(vmm, vm.directory.console())));
    }
    if (ready > 0 && two[0].revents == 0) {
      return std::unexpected(made.Ended());
    }
    auto heard = newcomers->OnReadable("");
    if (!heard) {
      if (heard.error().code == Code::kFailedPrecondition) {
        return std::unexpected(std::move(heard).error());
      }
      continue;
    }
    if (std::optional<Greeted> agent = std::move(*heard)) {
      return *std::move(agent);
    }
  }
}

}  // namespace

Result<ReadyVm> RestoreVm(SandboxContext& context, const MachineMeans& means,
                          const MachineRequest& request, Accelerator accelerator,
                          const std::string& snapshot, Deadline deadline) {
  const std::string_view vmm = VmmName(request.options.vmm);
  NewVm made(context, means, request, accelerator);
  GANTRY_CHECK_OK(made.MakePlace());
  // The machine that it becomes listens anew; the connection that there is then stays.
  GANTRY_TRY(
      UniqueFd listener,
      MachineDirectory::Listen(made.vm().directory.port(protocol::kControlPort), made.vm().user));
  GANTRY_CHECK_OK(made.Run(snapshot, "", deadline));
  Status restored = made.hypervisor().Restore(deadline);
  if (restored) {
    restored = made.hypervisor().Resume(deadline);
  }
  if (!restored) {
    return std::unexpected(made.WithWords(std::move(restored).error().Within(
        Format("restore a machine from the template '{}'", snapshot))));
  }
  GANTRY_TRY(made.vm().agent, AwaitHello(made, made.vm(), std::move(listener), vmm, deadline));
  GANTRY_CHECK_OK(made.hypervisor().Pause(deadline));
  return made.Release();
}

}  // namespace gantry::vmm
