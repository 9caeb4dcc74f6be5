// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container/sub_container.h"

#include <signal.h>

#include <chrono>
#include <mutex>
#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/checkpoint/checkpoint.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/pod/out_of_memory.h"
#include "plugins/gvisor/spec/root_image.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kSubBlob = "sub";

}  // namespace

SubContainer::SubContainer(const ContainerRequest& request, ContainerContext& context,
                           std::shared_ptr<Pod> pod)
    : GvisorContainer(request, context, std::move(pod)),
      request_(request),
      names_(CallNames::OfContainer(id().str())),
      streams_name_(StoreName("stdio", id().str())),
      report_(std::make_shared<EndReport>(context)) {}

SubContainer::~SubContainer() {
  pod().pid_namespaces().Remove(id());
  report_->Retire();
}

std::string SubContainer::ExitPath() const { return bundle() + "/init.exit"; }

Status SubContainer::ReadSpec() {
  GANTRY_TRY(spec_, MakeSpec({.json = request_.spec_json,
                              .rootfs = request_.rootfs,
                              .bundle = request_.bundle,
                              .kind = ContainerKind::kFurther,
                              .volumes = pod().record().volumes},
                             pod().flags().overlay));
  GANTRY_CHECK_OK(CheckMounts(spec_));
  if (pod().record().by_create && !spec_.uids.empty()) {
    // In the one that runsc has made nobody can drop his groups, so the gofer gets another one,
    // with the same ids, as those that gantry starts itself do.
    spec_.userns_path.clear();
  }
  return {};
}

GoferRequest SubContainer::GoferRequestOf(const PodRecord& record, const UniqueFd& runsc) const {
  return {.place = record.place,
          .spec = spec_,
          .program = runsc,
          .asks_for_mounts = record.asks_for_mounts,
          .id = id().str(),
          .logs = pod().flags().logs,
          .log_owner = {.sandbox = pod().id().str(), .container = id().str()},
          .tag = GoferTag(id().str())};
}

Status SubContainer::OpenFiles(bool fresh) {
  GANTRY_TRY(filestores_, MakeFilestores(spec_, pod().flags().overlay, pod().id().str()));
  resolved_ = spec_.json;
  if (!spec_.NeedsGofer()) {
    return fresh ? MakeReady() : Status();
  }
  PodRecord record = pod().record();
  record.place.bundle = bundle();
  GANTRY_TRY(const UniqueFd runsc, pod().Runsc());
  const GoferRequest wanted = GoferRequestOf(record, runsc);
  GANTRY_TRY(gofer_, StartGofer(pod().context(), wanted));
  SetOomScore(pod().context(), *gofer_.process, spec_.oom_score_adj);
  if (fresh) {
    GANTRY_CHECK_OK(MakeReady());
  }
  GANTRY_TRY(const std::string mounts, ReadMounts(gofer_, wanted, pod().StepDeadline()));
  GANTRY_TRY(resolved_, WithMounts(spec_.json, mounts));
  return {};
}

Status SubContainer::Create() {
  if (!request_.checkpoint.empty()) {
    return NotTheRoot(pod(), "restore", id());
  }
  GANTRY_TRY([[maybe_unused]] const auto sentry, RunningSentry());
  GANTRY_CHECK_OK(ReadSpec());
  GANTRY_CHECK_OK(CheckRootImage(spec_, pod().options()));
  GANTRY_TRY(const InsideHooks inside, context().BeginHooks());
  GANTRY_TRY([[maybe_unused]] const auto cgroups,
             context().MakeCgroups(CgroupDevices::kNotLimited));
  Status made = OpenFiles(true);
  if (made) {
    LogHooksLeftOut(inside, pod().record().runs_hooks && spec_.HasRootOfGofer());
    made = context().RunHooks(HookPoint::kCreate, pod().process()->pid());
  }
  if (made) {
    context().init().SetPid(pod().process()->pid());
    made = context().Save(kSubBlob);
  }
  if (!made) {
    IgnoreError(Delete(), "the first error counts");
  }
  return made;
}

Status SubContainer::MakeReady() {
  GANTRY_CHECK_OK(KeepOwnStreams());
  const auto sentry = pod().sentry();
  return sentry && sentry->root_started() ? Announce(pod().StepDeadline()) : Status();
}

Result<bool> SubContainer::HasStarted() { return started_.load(); }

Status SubContainer::Kill(uint32_t signal) {
  if (started_) {
    return Signal({.container = id().str()}, signal);
  }
  const auto asked = std::chrono::steady_clock::now();
  {
    const std::unique_lock lock(start_mutex_, Left(pod().StepDeadline()));
    if (!lock) {
      Status late = Fail(Code::kDeadlineExceeded,
                         "signal container '{}': its start has not come to an end", id().str());
      return signal == SIGKILL ? pod().KillIfItHangs(std::move(late).error(), asked) : late;
    }
    if (!started_) {
      return KillUnstarted(signal);
    }
  }
  return Signal({.container = id().str()}, signal);
}

Status SubContainer::KillUnstarted(uint32_t signal) {
  if (report_->told()) {
    return Fail(Code::kNotFound, "signal container '{}': process already finished", id().str());
  }
  if (!EndsByDefault(signal)) {
    return Fail(Code::kFailedPrecondition, "signal container '{}': it has not been started",
                id().str());
  }
  // Who reads them waits for their end.
  LetStreamsGo();
  report_->Tell(ExitedNow(128 + signal));
  return {};
}

Status SubContainer::ConsoleSignal(uint32_t signal) {
  return Signal({.container = id().str(), .mode = SignalMode::kForeground}, signal);
}

Status SubContainer::KillAll(uint32_t signal) {
  if (!started_) {
    return Kill(signal);
  }
  // What its init had left has been killed before its end was told.
  return report_->told() ? Status() : GvisorContainer::KillAll(signal);
}

std::optional<ContainerEnd> SubContainer::End() const {
  return report_->told() ? std::optional(ContainerEnd{report_->out_of_memory()}) : std::nullopt;
}

void SubContainer::EndGofer() {
  gofer_.connections.clear();
  if (gofer_.process) {
    IgnoreError(gofer_.process->Signal(SIGKILL), "it may have ended by itself");
    IgnoreError(gofer_.process->Wait(pod().options().timeout), "the sandbox's end kills it");
  }
}

Status SubContainer::Destroy(Sentry& sentry) {
  const auto asked = std::chrono::steady_clock::now();
  const auto destroyed = sentry.manager().DestroySubcontainer(id().str(), pod().StepDeadline());
  if (destroyed || destroyed.error().code == Code::kNotFound ||
      destroyed.error().cause == urpc::Cause::kGone) {
    return {};
  }
  return pod().KillIfItHangs(
      ToError(destroyed.error(), Format("delete container '{}'", id().str())), asked);
}

Status SubContainer::Delete() {
  const Deadline deadline = pod().StepDeadline();
  const auto sentry = pod().sentry();
  const bool alive = sentry && pod().IsAlive();
  pod().oom_scores().Remove(id().str());
  pod().ApplyOomScores();
  if (alive) {
    // A container that stands still does not end.
    IgnoreError(sentry->Resume(id().str(), deadline), "then it ends when the sandbox does");
  }
  if (alive) {
    // That kills what runs of it.
    GANTRY_CHECK_OK(Destroy(*sentry));
  }
  if (wait_ && !report_->told()) {
    wait_->Settle(deadline);
  }
  EndGofer();
  names_.Drop(pod().context());
  LetStreamsGo();
  GANTRY_CHECK_OK(ForgetStats());
  GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(spec_, pod().id().str())));
  RunPoststop();
  return {};
}

Status SubContainer::Recover(const std::string& blob) {
  GANTRY_CHECK_OK(ReadSpec());
  gofer_.process = pod().context().FindSpawned(GoferTag(id().str()));
  if (blob.empty()) {
    GANTRY_CHECK_OK(Delete());
    return Fail(Code::kAborted, "recover container '{}': its creation was cut short", id().str());
  }
  if (const auto known = KnownProcess::Read(ExitPath()); known && report_->TellKnown(*known)) {
    // The engine before may have been killed before it let go of them.
    names_.Drop(pod().context());
    started_ = true;
    return {};
  }
  if (!pod().process()) {
    report_->Tell(ExitedNow(kKilledStatus), KilledForMemory(pod(), nullptr));
    return {};
  }
  context().init().SetPid(pod().process()->pid());
  const Deadline deadline = pod().StepDeadline();
  GANTRY_TRY(const bool started, TakeUpStart(deadline));
  if (started) {
    return Watch(std::nullopt, deadline);
  }
  // The connections with its gofer are gone, and nobody else has them.
  EndGofer();
  return OpenFiles(false);
}

}  // namespace gantry::gvisor
