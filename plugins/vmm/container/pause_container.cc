// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/pause_container.h"

#include <csignal>
#include <utility>

#include <gantry/format.h>

namespace gantry::vmm {
namespace {

constexpr const char* kPauseBlob = "pause";

}  // namespace

PauseContainer::PauseContainer(const ContainerRequest& request, ContainerContext& context,
                               std::shared_ptr<Pod> pod)
    : pod_(std::move(pod)),
      context_(context),
      id_(request.id.str()),
      report_(std::make_shared<EndReport>(context)) {}

PauseContainer::~PauseContainer() {
  pod_->ends().Remove(id_, "");
  report_->Retire();
}

Status PauseContainer::Create(const ContainerRequest& request, const BootMachine& boot) {
  const std::string what = Format("create container '{}'", id_);
  auto spec = ReadRequest(request, false);
  if (!spec) {
    return std::unexpected(std::move(spec).error().Within(what));
  }
  GANTRY_TRY(const InsideHooks inside, context_.BeginHooks());
  if (Status can = CheckHooks(inside); !can) {
    return std::unexpected(std::move(can).error().Within(what));
  }
  if (inside.start_container) {
    return Fail(Code::kFailedPrecondition,
                "{}: 'hooks.startContainer': a pause container has no process in a virtual machine",
                what);
  }
  if (Status made = Make(*spec, boot); !made) {
    IgnoreError(Delete(), "the first error counts");
    return std::unexpected(std::move(made).error().Within(what));
  }
  return {};
}

Status PauseContainer::Make(const oci::Spec& spec, const BootMachine& boot) {
  GANTRY_TRY(const std::vector<std::string> cgroups,
             context_.MakeCgroups(CgroupDevices::kNotLimited));
  GANTRY_CHECK_OK(boot(spec, cgroups));
  pod_->ends().Add(id_, "", report_);
  GANTRY_TRY(const HostPid pid, pod_->MachinePid());
  context_.init().SetPid(pid);
  pod_->SetOomScore(id_, spec.process.oom_score_adj);
  GANTRY_CHECK_OK(context_.RunHooks(HookPoint::kCreate, pid));
  GANTRY_CHECK_OK(context_.Save(kPauseBlob));
  is_made_ = true;
  return {};
}

Status PauseContainer::Recover(const ContainerRequest& request, const std::string& blob) {
  if (!IsRecord(blob)) {
    GANTRY_CHECK_OK(Delete());
    return Fail(Code::kAborted, "recover container '{}': its creation was cut short", id_);
  }
  is_made_ = true;
  if (const auto spec = oci::ParseSpec(request.spec_json, "config.json")) {
    pod_->SetOomScore(id_, spec->process.oom_score_adj);
  }
  pod_->ends().Add(id_, "", report_);
  if (const auto pid = pod_->MachinePid()) {
    context_.init().SetPid(*pid);
  } else {
    report_->Tell(ExitedNow(kKilledStatus));
  }
  return {};
}

bool PauseContainer::IsRecord(const std::string& blob) { return blob == kPauseBlob; }

Status PauseContainer::Start() {
  GANTRY_TRY(const HostPid pid, pod_->MachinePid());
  Status ran = context_.RunHooks(HookPoint::kStart, pid);
  if (!ran) {
    IgnoreError(Kill(SIGKILL), "it may have ended by itself");
  }
  return ran;
}

Status PauseContainer::Kill(uint32_t signal) {
  if (report_->told()) {
    return Fail(Code::kNotFound, "signal container '{}': process already finished", id_);
  }
  if (EndsByDefault(signal)) {
    report_->Tell(ExitedNow(128 + signal));
  }
  return {};
}

Result<std::vector<ProcessInfo>> PauseContainer::Processes() {
  GANTRY_TRY(const HostPid pid, pod_->MachinePid());
  return std::vector<ProcessInfo>{{.pid = static_cast<uint32_t>(pid.value), .exec = {}}};
}

Status PauseContainer::Checkpoint(const CheckpointRequest& /*request*/) {
  return Fail(Code::kUnimplemented, "checkpoint container '{}': not of a virtual machine", id_);
}

Result<std::unique_ptr<Process>> PauseContainer::Exec(const ExecRequest& request,
                                                      ProcessContext& /*context*/) {
  return Fail(Code::kFailedPrecondition,
              "exec '{}' in container '{}': a pod's pause container is its virtual machine, and "
              "has no files: choose another container",
              request.id.str(), id_);
}

Status PauseContainer::Delete() {
  GANTRY_CHECK_OK(pod_->Shutdown());
  if (is_made_) {
    report_->Tell(ExitedNow(kKilledStatus));
  }
  pod_->ends().Remove(id_, "");
  IgnoreError(context_.RunHooks(HookPoint::kDelete, {}), "those that fail are logged");
  return {};
}

}  // namespace gantry::vmm
