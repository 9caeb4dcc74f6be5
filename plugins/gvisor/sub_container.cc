// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sub_container.h"

#include <fcntl.h>
#include <signal.h>

#include <cerrno>
#include <utility>

#include <gantry/files.h>
#include <gantry/format.h>

#include "plugins/gvisor/checkpoint/checkpoint.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/out_of_memory.h"
#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/stdio/streams.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kSubBlob = "sub";
constexpr const char* kStreams = "stdio";

}  // namespace

SubContainer::SubContainer(const ContainerRequest& request, ContainerContext& context,
                           std::shared_ptr<Pod> pod)
    : GvisorContainer(request, context, std::move(pod)),
      request_(request),
      report_(std::make_shared<EndReport>(context)) {}

SubContainer::~SubContainer() {
  pod().pid_namespaces().Remove(id());
  report_->Retire();
}

std::string SubContainer::Name(std::string_view what) const { return StoreName(what, id().str()); }

std::string SubContainer::ExitPath() const { return bundle() + "/init.exit"; }

Status SubContainer::ReadSpec() {
  GANTRY_CHECK_OK(hooks().Read(request_.spec_json));
  GANTRY_TRY(spec_, MakeSpec({.json = request_.spec_json,
                              .rootfs = request_.rootfs,
                              .bundle = request_.bundle,
                              .is_sub = true,
                              .volumes = pod().record().volumes},
                             pod().flags().overlay));
  if (!spec_.mapped_mount.empty()) {
    return Fail(Code::kFailedPrecondition,
                "create container '{}': the mount at '{}' is to be id-mapped otherwise than the "
                "container, which gVisor cannot do",
                id().str(), spec_.mapped_mount);
  }
  if (pod().record().by_create && !spec_.uids.empty()) {
    // In the one that runsc has made nobody can drop his groups, so the gofer gets another one,
    // with the same ids, as those that gantry starts itself do.
    spec_.userns_path.clear();
  }
  return {};
}

GoferPlan SubContainer::PlanGofer(const PodRecord& record, const UniqueFd& runsc) const {
  return {.place = record.place,
          .spec = spec_,
          .program = runsc,
          .asks_for_mounts = record.asks_for_mounts,
          .id = id().str(),
          .log = kGoferLog,
          .logs = pod().flags().logs,
          .log_owner = {.sandbox = pod().id().str(), .container = id().str()},
          .tag = GoferTag(id().str())};
}

void SubContainer::HavePidNamespace() {
  if (spec_.pids == PidNamespace::kOwn) {
    pod().pid_namespaces().Add(id(), [report = report_] { return !report->told(); });
  }
}

Result<std::string> SubContainer::SpecToSend() {
  std::string name;
  if (spec_.pids == PidNamespace::kOwn) {
    name = PidNamespaces::NameOf(id());
  } else if (spec_.pids == PidNamespace::kShared) {
    auto shared = pod().pid_namespaces().Shared();
    if (!shared) {
      pod().context().Log(LogLevel::kWarning,
                          Format("start container '{}': {}; it sees those of all", id().str(),
                                 shared.error().message));
    }
    name = std::move(shared).value_or("");
  }
  return WithPidNamespace(resolved_, name);
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
  const GoferPlan plan = PlanGofer(record, runsc);
  GANTRY_TRY(gofer_, StartGofer(pod().context(), plan));
  SetOomScore(pod().context(), *gofer_.process, spec_.oom_score_adj);
  if (fresh) {
    GANTRY_CHECK_OK(MakeReady());
  }
  GANTRY_TRY(const std::string mounts, ReadMounts(gofer_, plan, pod().StepDeadline()));
  GANTRY_TRY(resolved_, WithMounts(spec_.json, mounts));
  return {};
}

Status SubContainer::Create() {
  if (!request_.checkpoint.empty()) {
    return NotTheRoot(pod(), "restore", id());
  }
  GANTRY_TRY([[maybe_unused]] const auto sentry, RunningSentry());
  GANTRY_CHECK_OK(ReadSpec());
  GANTRY_CHECK_OK(hooks().Begin());
  GANTRY_TRY([[maybe_unused]] const auto cgroups, context().MakeCgroups());
  Status made = OpenFiles(true);
  if (made) {
    hooks().SayWhatIsLeftOut(pod().record().runs_hooks && spec_.HasRootOfGofer());
    made = hooks().Create(pod().process()->pid());
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

Status SubContainer::KeepOwnStreams() {
  GANTRY_TRY(streams_, KeepStreams(pod().context(), context().init(), Name(kStreams)));
  return {};
}

/// From the store where an engine before this one has made the container.
Status SubContainer::HaveStreams() {
  if (!streams_.ends[0]) {
    GANTRY_TRY(streams_, KeptStreams(pod().context(), Name(kStreams), request_.terminal));
  }
  return {};
}

void SubContainer::LetStreamsGo() {
  streams_ = {};
  ForgetKept(pod().context(), Name(kStreams), request_.terminal);
}

Result<bool> SubContainer::HasStarted() { return started_.load(); }

Status SubContainer::Start() {
  if (started_) {
    return {};
  }
  if (report_->told()) {
    return Fail(Code::kFailedPrecondition, "start container '{}': it has been killed", id().str());
  }
  const Deadline deadline = pod().StepDeadline();
  GANTRY_CHECK_OK(HaveStreams());
  GANTRY_TRY(urpc::Connection wait, SendStart(streams_, deadline));
  GANTRY_CHECK_OK(Watch(std::move(wait), deadline));
  hooks().Start(pod().process()->pid());
  return {};
}

Status SubContainer::Announce(Deadline deadline) {
  if (announced_) {
    return {};
  }
  GANTRY_TRY(const auto sentry, RunningSentry());
  const UniqueFd* terminal = streams_.terminal ? &streams_.ends[0] : nullptr;
  const auto made = sentry->manager().CreateSubcontainer(id().str(), terminal, deadline);
  // An engine before this one may have come as far.
  if (!made && made.error().code != Code::kAlreadyExists) {
    return std::unexpected(ToError(made.error(), Format("announce container '{}'", id().str())));
  }
  announced_ = true;
  return {};
}

Result<urpc::Connection> SubContainer::SendStart(const Streams& streams, Deadline deadline) {
  GANTRY_TRY(const auto sentry, RunningSentry());
  GANTRY_CHECK_OK(Announce(deadline));
  GANTRY_TRY(std::string spec, SpecToSend());
  Subcontainer container{.id = id().str(),
                         .spec_json = std::move(spec),
                         .conf_json = pod().record().conf,
                         .mounts = {},
                         .filestores = filestores_.size()};
  std::vector<int> fds;
  for (const UniqueFd& end : streams.ends) {
    if (!streams.terminal) {
      fds.push_back(end.get());
    }
  }
  for (const UniqueFd& file : filestores_) {
    fds.push_back(file.get());
  }
  std::vector<UniqueFd> images;
  size_t next = 0;
  for (const FileMount& mount : spec_.mounts) {
    container.mounts.push_back(mount.conf);
    if (mount.conf.lower == MountConf::Lower::kNone) {
      continue;
    }
    if (mount.conf.lower == MountConf::Lower::kGofer) {
      fds.push_back(gofer_.connections[next++].get());
      continue;
    }
    images.emplace_back(open(mount.source.c_str(), O_RDONLY | O_CLOEXEC));
    if (!images.back()) {
      return FailErrno(errno, "open the image '{}'", mount.source);
    }
    fds.push_back(images.back().get());
  }
  return sentry->Start(container, fds, {.start = Name("start"), .wait = Name("wait")}, deadline);
}

/// Of several the first answer counts: whether that on which an engine before this one has
/// asked is among them cannot be told.
std::vector<urpc::Connection> SubContainer::AskForEnd(std::optional<urpc::Connection> wait,
                                                      Deadline deadline) {
  std::vector<urpc::Connection> waits;
  if (!wait) {
    if (auto stored = pod().context().Take(Name("wait"))) {
      waits.emplace_back(std::move(*stored));
    }
    const auto sentry = pod().sentry();
    auto opened = sentry ? urpc::Connection::Open(sentry->socket(), deadline)
                         : urpc::Outcome<urpc::Connection>(std::unexpected(urpc::Failure{}));
    if (opened) {
      wait = std::move(*opened);
    }
  }
  if (wait && ContainerManager::SendWait(*wait, id().str(), deadline)) {
    waits.push_back(*std::move(wait));
  }
  return waits;
}

/// The sentry has started it.
Status SubContainer::Watch(std::optional<urpc::Connection> wait, Deadline deadline) {
  started_ = true;
  HavePidNamespace();
  pod().oom_scores().Add(id().str(), spec_.oom_score_adj);
  pod().ApplyOomScores();
  // The sentry has its own: of a gofer's connection that one side keeps no end is seen.
  gofer_.connections.clear();
  filestores_.clear();
  SandboxContext& sandbox = pod().context();
  std::vector<urpc::Connection> waits = AskForEnd(std::move(wait), deadline);
  sandbox.Drop(Name("start"));
  LetStreamsGo();
  auto tell = TellEnd(report_, {.pod = shared_pod(),
                                .path = ExitPath(),
                                .name = Name("wait"),
                                .container = id().str(),
                                .gofer = gofer_.process});
  if (waits.empty()) {
    tell(std::nullopt);
    return {};
  }
  GANTRY_TRY(wait_, ExitWait::Begin(sandbox, std::move(waits), std::move(tell)));
  return {};
}

Status SubContainer::Kill(uint32_t signal) {
  if (started_) {
    return Signal({.container = id().str()}, signal);
  }
  if (report_->told()) {
    return Fail(Code::kNotFound, "signal container '{}': process already finished", id().str());
  }
  if (!Ends(signal)) {
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
  return started_ ? GvisorContainer::KillAll(signal) : Kill(signal);
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
  if (wait_ && !report_->told()) {
    IgnoreError(KillAll(SIGKILL), "it may have ended by itself");
    wait_->Settle(deadline);
  }
  if (alive) {
    const auto destroyed = sentry->manager().DestroySubcontainer(id().str(), deadline);
    if (!destroyed && destroyed.error().code != Code::kNotFound &&
        destroyed.error().cause != urpc::Cause::kGone) {
      return std::unexpected(
          ToError(destroyed.error(), Format("delete container '{}'", id().str())));
    }
  }
  EndGofer();
  SandboxContext& sandbox = pod().context();
  for (const char* what : {"start", "wait"}) {
    sandbox.Drop(Name(what));
  }
  LetStreamsGo();
  GANTRY_CHECK_OK(RemoveLog(bundle(), kGoferLog));
  GANTRY_CHECK_OK(ForgetStats());
  GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(spec_, pod().id().str())));
  hooks().Delete();
  return {};
}

Result<bool> SubContainer::TakeUpStart(Deadline deadline) {
  SandboxContext& sandbox = pod().context();
  if (!sandbox.Take(Name("start"))) {
    // What it had come to is known, and the question how it ends is left, if it was started.
    return sandbox.Take(Name("wait")).has_value();
  }
  auto call = TakeUpCall(sandbox, Name("start"), deadline);
  if (!call) {
    // Its sentry is gone.
    return true;
  }
  if (*call && (*call)->Peek(kStartSubcontainer, deadline)) {
    return true;
  }
  sandbox.Drop(Name("wait"));
  return false;
}

Status SubContainer::Recover(const std::string& blob) {
  GANTRY_CHECK_OK(ReadSpec());
  gofer_.process = pod().context().FindSpawned(GoferTag(id().str()));
  hooks().Recover();
  if (blob.empty()) {
    GANTRY_CHECK_OK(Delete());
    return Fail(Code::kAborted, "recover container '{}': its creation was cut short", id().str());
  }
  if (const auto known = KnownProcess::Read(ExitPath()); known && report_->TellKnown(*known)) {
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
