// SPDX-License-Identifier: Apache-2.0
//
// What a container is asked once it is there is in the second half; how it is made and removed in
// the first. Each step is undone by `Delete`, which does without the guest where that is gone.
#include "plugins/vmm/container/container.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/container/exec.h"
#include "plugins/vmm/container/guest_spec.h"
#include "plugins/vmm/container/stats.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {
namespace {

/// For a guest to let go of what it has of a container that is gone.
constexpr std::chrono::seconds kLetGo{5};

}  // namespace

VmmContainer::VmmContainer(const ContainerRequest& request, ContainerContext& context,
                           std::shared_ptr<Pod> pod, bool is_root)
    : pod_(std::move(pod)),
      context_(context),
      container_id_(request.id),
      is_root_(is_root),
      report_(std::make_shared<EndReport>(context)),
      record_(std::make_shared<ContainerRecord>(context)),
      process_(pod_, request.id.str(), "", report_) {}

VmmContainer::~VmmContainer() {
  pod_->ends().Remove(id(), "");
  report_->Retire();
  record_->Retire();
}

Status VmmContainer::Create(const ContainerRequest& request, const BootMachine& boot) {
  const std::string what = Format("create container '{}'", id());
  auto spec = ReadRequest(request, !boot);
  if (!spec) {
    return std::unexpected(std::move(spec).error().Within(what));
  }
  GANTRY_TRY(const InsideHooks inside, context_.BeginHooks());
  if (Status can = CheckHooks(inside); !can) {
    return std::unexpected(std::move(can).error().Within(what));
  }
  if (Status made = Make(request, *spec, boot); !made) {
    IgnoreError(process_.Delete(), "the first error counts");
    IgnoreError(Remove(), "the first error counts");
    return std::unexpected(std::move(made).error().Within(what));
  }
  return {};
}

Status VmmContainer::Make(const ContainerRequest& request, const oci::Spec& spec,
                          const BootMachine& boot) {
  GANTRY_TRY(const std::vector<std::string> cgroups,
             context_.MakeCgroups(CgroupDevices::kNotLimited));
  GANTRY_TRY(const Limits limits, LimitsIn(spec.resources_json));
  if (boot) {
    GANTRY_CHECK_OK(boot(spec, cgroups));
  }
  GANTRY_TRY(const HostPid pid, pod_->MachinePid());
  GANTRY_CHECK_OK(pod_->machine().MakeRoom(id(), limits, pod_->StepDeadline()));
  GANTRY_TRY(ContainerStorage files, GiveFiles(request, spec));
  GANTRY_CHECK_OK(MakeInGuest(request, std::move(files)));
  pod_->SetOomScore(id(), spec.process.oom_score_adj);
  GANTRY_CHECK_OK(context_.RunHooks(HookPoint::kCreate, pid));
  GANTRY_CHECK_OK(record_->Keep(limits));
  is_made_ = true;
  return {};
}

Result<ContainerStorage> VmmContainer::GiveFiles(const ContainerRequest& request,
                                                 const oci::Spec& spec) {
  GANTRY_TRY(ContainerStorage files, pod_->machine().storage().Add(request, spec));
  for (const Disk& disk : files.disks) {
    GANTRY_CHECK_OK(pod_->machine().AddDisk(disk, pod_->StepDeadline()));
  }
  if (!files.sysctls.empty() || !files.files.empty()) {
    protocol::SetUp set_up;
    set_up.sysctls = files.sysctls;
    set_up.files = std::move(files.files);
    GANTRY_CHECK_OK(pod_->Call(set_up));
  }
  if (!files.attach.mounts.empty()) {
    GANTRY_CHECK_OK(pod_->Call(files.attach));
  }
  return files;
}

Status VmmContainer::MakeInGuest(const ContainerRequest& request, ContainerStorage files) {
  protocol::CreateContainer wanted;
  wanted.container = id();
  wanted.bundle = std::move(files.bundle);
  GANTRY_TRY(wanted.spec_json, MakeGuestSpec(files.spec_json, request.terminal));
  GANTRY_CHECK_OK(process_.Make(std::move(wanted), request.terminal, context_.init()));
  // Not before: there may have been another one of that id, which had to be ended.
  pod_->ends().Add(id(), "", report_, record_);
  return {};
}

void VmmContainer::TakeFilesFromGuest() {
  Storage* const storage = pod_->storage();
  if (storage == nullptr || !pod_->IsAlive()) {
    return;
  }
  const auto say = [this](const Error& error) {
    pod_->context().Log(
        LogLevel::kWarning,
        Format("delete container '{}': {}; the guest has it until it ends", id(), error.message));
  };
  const Deadline deadline =
      std::min(pod_->StepDeadline(), std::chrono::steady_clock::now() + kLetGo);
  const protocol::Detach detach = storage->DetachOf(container_id_);
  if (!detach.targets.empty()) {
    if (const auto done = pod_->machine().guest().Call(detach, deadline); !done) {
      say(done.error());
    }
  }
  for (const std::string& serial : storage->DisksOf(container_id_)) {
    if (const Status done = pod_->machine().RemoveDisk(serial, deadline); !done) {
      say(done.error());
    }
  }
}

Status VmmContainer::RemoveFiles() {
  if (is_root_) {
    return pod_->Shutdown();
  }
  TakeFilesFromGuest();
  if (pod_->IsAlive()) {
    IgnoreError(pod_->machine().GiveRoomBack(id(), std::chrono::steady_clock::now() + kLetGo),
                "the next one has it");
  }
  Storage* const storage = pod_->storage();
  return storage == nullptr ? Status() : storage->Remove(container_id_);
}

Status VmmContainer::Delete() {
  if (!is_root_ || !report_->told()) {
    GANTRY_CHECK_OK(process_.Delete());
  }
  return Remove();
}

/// What is not in the guest.
Status VmmContainer::Remove() {
  GANTRY_CHECK_OK(RemoveFiles());
  if (is_made_) {
    report_->Tell(ExitedNow(kKilledStatus));
  }
  pod_->ends().Remove(id(), "");
  pod_->DropOomScore(id());
  IgnoreError(context_.RunHooks(HookPoint::kDelete, {}), "those that fail are logged");
  return {};
}

Status VmmContainer::Start() {
  if (!is_started_) {
    GANTRY_CHECK_OK(process_.Start());
    is_started_ = true;
  }
  GANTRY_TRY(const HostPid pid, pod_->MachinePid());
  Status ran = context_.RunHooks(HookPoint::kStart, pid);
  if (!ran) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
  }
  return ran;
}

Status VmmContainer::Kill(uint32_t signal) { return process_.Signal(signal, false); }

Status VmmContainer::KillAll(uint32_t signal) { return process_.Signal(signal, true); }

Status VmmContainer::Resize(ConsoleSize size) { return process_.Resize(size); }

Status VmmContainer::Pause() {
  GANTRY_CHECK_OK(pod_->Call(protocol::Pause{.container = id()}));
  return {};
}

Status VmmContainer::Resume() {
  GANTRY_CHECK_OK(pod_->Call(protocol::Resume{.container = id()}));
  return {};
}

Status VmmContainer::Update(const std::string& resources_json) {
  GANTRY_TRY(const Limits limits, LimitsIn(resources_json, record_->limits()));
  protocol::Update update{.container = id(), .resources_json = {}};
  GANTRY_TRY(update.resources_json, MakeGuestResources(resources_json));
  GANTRY_CHECK_OK(pod_->machine().MakeRoom(id(), limits, pod_->StepDeadline()));
  GANTRY_CHECK_OK(pod_->Call(update));
  return record_->Keep(limits);
}

Result<ContainerMetrics> VmmContainer::Stats() {
  auto stats = pod_->Call(protocol::Stats{.container = id()});
  const MutexLock lock(mutex_);
  if (stats) {
    last_metrics_ = MetricsOf(*stats);
  } else if (pod_->IsAlive()) {
    return std::unexpected(std::move(stats).error());
  }
  return last_metrics_;
}

Result<std::vector<ProcessInfo>> VmmContainer::Processes() {
  GANTRY_TRY(const protocol::PidsAnswer answer, pod_->Call(protocol::Pids{.container = id()}));
  std::vector<ProcessInfo> processes;
  for (const protocol::PidInfo& one : answer.pids) {
    ProcessInfo& info = processes.emplace_back();
    info.pid = static_cast<uint32_t>(one.pid);
    if (auto exec = ExecId::Parse(one.exec)) {
      info.exec = std::move(*exec);
    }
  }
  return processes;
}

Status VmmContainer::Checkpoint(const CheckpointRequest& /*request*/) {
  return Fail(Code::kUnimplemented,
              "checkpoint container '{}': not in a virtual machine: its kernel has the processes",
              id());
}

Result<std::unique_ptr<Process>> VmmContainer::Exec(const ExecRequest& request,
                                                    ProcessContext& context) {
  return std::make_unique<VmmExec>(pod_, id(), request, context);
}

Result<std::unique_ptr<Process>> VmmContainer::RecoverExec(const ExecRequest& request,
                                                           ProcessContext& context, bool started) {
  auto exec = std::make_unique<VmmExec>(pod_, id(), request, context);
  GANTRY_CHECK_OK(started ? exec->Recover() : Status());
  return exec;
}

}  // namespace gantry::vmm
