// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/rights.h>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/machine_parts.h"
#include "plugins/vmm/machine/ready_vms.h"
#include "plugins/vmm/machine/users.h"

namespace gantry::vmm {
namespace {

constexpr size_t kEntropyBytes = 64;

int64_t RealTime() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<std::string> Entropy() {
  std::string bytes(kEntropyBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return FailErrno(errno, "read random bytes for a guest");
  }
  return bytes;
}

/// Firecracker makes it itself, where its user may.
std::string ControlOf(const VmmOptions& options, const MachineDirectory& directory) {
  return options.vmm == Vmm::kFirecracker ? directory.sockets() + "/api" : directory.control();
}

}  // namespace

Status Machine::Parts::Start(Deadline deadline) {
  Status started = Boot(deadline);
  {
    const MutexLock lock(mutex_);
    if (started && end_) {
      started = std::unexpected(*end_);
    }
    quiet_ = !started;
  }
  if (!started) {
    IgnoreError(Discard(), "what is told is why it did not start");
  }
  return started;
}

Status Machine::Parts::Boot(Deadline deadline) {
  GANTRY_TRY(accelerator_, Settle(means_, request_, deadline));
  GANTRY_CHECK_OK(MakeSandboxDirectory(directory_.sandbox()));
  if (means_.ready_vms == nullptr || request_.options.templates == 0) {
    return BootCold(deadline);
  }
  const std::shared_ptr<void> starting = means_.ready_vms->Starting();
  const std::optional<Status> ready = StartReady(
      std::min(deadline, std::chrono::steady_clock::now() + request_.options.boot_timeout));
  return ready ? *ready : BootCold(deadline);
}

Status Machine::Parts::BootCold(Deadline deadline) {
  GANTRY_CHECK_OK(Prepare());
  GANTRY_CHECK_OK(MakeVm());
  GANTRY_CHECK_OK(Listen());
  deadline = std::min(deadline, std::chrono::steady_clock::now() + request_.options.boot_timeout);
  GANTRY_CHECK_OK(RunPrograms(deadline));
  GANTRY_TRY(Greeted greeted, AwaitHello(deadline));
  link_->Take(std::move(greeted));
  GANTRY_CHECK_OK(WatchParts());
  return SetUpGuest(deadline);
}

Status Machine::Parts::Prepare() {
  GANTRY_CHECK_OK(MakeSandboxDirectory(directory_.sandbox()));
  GANTRY_TRY(const std::optional<uint32_t> uid, TakeUser(request_.options, directory_.sandbox()));
  user_.uid = uid;
  GANTRY_TRY(user_, UserOf(uid, accelerator_));
  return directory_.Make(user_, IsHybrid(request_.options.vmm));
}

// Of a VM that runs already the devices are not of its configuration: it tells them itself.
Status Machine::Parts::MakeVm() {
  GANTRY_TRY(VmConfig config, ConfigOf(request_, accelerator_, directory_));
  if (!vmm_) {
    config.disks = std::move(request_.disks);
    config.nics = std::move(request_.nics);
    config.file_systems = request_.file_systems;
  }
  const HypervisorRequest wanted = {.options = request_.options,
                                    .accelerator = accelerator_,
                                    .control_socket = ControlOf(request_.options, directory_)};
  GANTRY_TRY(hypervisor_, means_.make_hypervisor(std::move(config), wanted));
  sizes_ = std::make_unique<Sizes>(*this, *hypervisor_, request_.size);
  return {};
}

Status Machine::Parts::Listen() {
  GANTRY_TRY(UniqueFd control,
             MachineDirectory::Listen(directory_.port(protocol::kControlPort), user_));
  GANTRY_TRY(UniqueFd streams,
             MachineDirectory::Listen(directory_.port(protocol::kStreamPort), user_));
  GANTRY_TRY(streams_, StreamListener::On(std::move(streams)));
  GANTRY_TRY(ends_, Ends::Make());
  AgentLinkEvents events;
  events.exited = events_.exited;
  events.out_of_memory = events_.out_of_memory;
  events.again = events_.reconnected;
  events.log = [this](const std::string& line) {
    context_.Log(LogLevel::kInfo, "guest agent: " + line);
  };
  events.lost = [this] { ends_->SetTime(means_.redial_limit); };
  GANTRY_TRY(link_,
             AgentLink::On(context_, request_.id, std::move(control), session_, std::move(events)));
  GANTRY_TRY(dialled_streams_,
             context_.WatchReadable(streams_->fd(), [this] { streams_->OnReadable(); }));
  return {};
}

Status Machine::Parts::RunPrograms(Deadline deadline) {
  for (const FileSystem& one : request_.file_systems) {
    GANTRY_CHECK_OK(MachineDirectory::Give(one.socket, user_));
  }
  const ProgramTerms terms = {.user = user_,
                              .cgroups = request_.cgroups,
                              .netns = request_.netns,
                              .own_root = request_.options.own_root};
  if (!IsHybrid(request_.options.vmm)) {
    GANTRY_TRY(vsock_, StartVsock(context_, means_, directory_, terms));
    GANTRY_CHECK_OK(ends_->Add(EndedPart::kVsock, *vsock_));
  }
  GANTRY_TRY(vmm_, StartVmm(context_, *hypervisor_, directory_, terms));
  GANTRY_CHECK_OK(ends_->Add(EndedPart::kVmm, *vmm_));
  Status booted = hypervisor_->Connect(deadline, vmm_.get());
  if (booted) {
    booted = hypervisor_->Configure(deadline);
  }
  if (booted) {
    booted = hypervisor_->Boot(deadline);
  }
  if (!booted) {
    return std::unexpected(NotBooted(std::move(booted).error()));
  }
  return {};
}

// Nobody at its socket: it has ended, or is about to.
Error Machine::Parts::NotBooted(Error error) {
  constexpr std::chrono::seconds kEnding{2};
  if (error.code == Code::kUnavailable && vmm_->Wait(kEnding)) {
    return BootEnd();
  }
  return WithWords(
      std::move(error).Within(Format("start {} for the VM of '{}'", vmm_name(), request_.id)));
}

Result<Greeted> Machine::Parts::AwaitHello(Deadline deadline) {
  std::string last;
  for (;;) {
    std::array<pollfd, 2> two = {{{.fd = link_->newcomers().fd(), .events = POLLIN, .revents = 0},
                                  {.fd = ends_->fd(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(two.data(), two.size(), PollTimeout(deadline));
    if (ready == 0) {
      Error late = BootTooSlow(vmm_name(), directory_.console());
      late.message += last.empty() ? "" : "; the last that dialled: " + last;
      return std::unexpected(WithWords(std::move(late)));
    }
    if (two[0].revents != 0) {
      auto heard = link_->newcomers().OnReadable(session_);
      if (!heard) {
        if (heard.error().code == Code::kFailedPrecondition) {
          return std::unexpected(std::move(heard).error());
        }
        last = heard.error().message;
        continue;
      }
      if (std::optional<Greeted> agent = std::move(*heard)) {
        return *std::move(agent);
      }
    } else if (two[1].revents != 0) {
      return std::unexpected(BootEnd());
    }
  }
}

Error Machine::Parts::BootEnd() {
  constexpr std::chrono::seconds kReaped{5};
  const auto vmm = vmm_->Wait(kReaped);
  if (vmm) {
    return WithWords(BootFailure(vmm_name(), hypervisor_->Ended(*vmm), directory_.console()));
  }
  const auto vsock = vsock_ ? vsock_->Ended() : std::nullopt;
  return {Code::kFailedPrecondition,
          0,
          Format("boot the VM of '{}': {}", request_.id,
                 vsock ? WhyOfVsock(*vsock).message : std::string("a part of it has ended")),
          {}};
}

Status Machine::Parts::SetUpGuest(Deadline deadline) {
  // It may be wanted again.
  protocol::SetUp set_up = request_.set_up;
  set_up.clock = protocol::Clock{.realtime_ns = RealTime(), .step = true};
  GANTRY_TRY(set_up.entropy, Entropy());
  GANTRY_CHECK_OK(Call(set_up, deadline));
  return {};
}

Status Machine::Parts::WatchParts() {
  GANTRY_CHECK_OK(ends_->Watch(context_, [this](EndedPart part) { OnEnd(part); }));
  return link_->Watch();
}

}  // namespace gantry::vmm
