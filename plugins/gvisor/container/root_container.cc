// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container/root_container.h"

#include <signal.h>
#include <sys/wait.h>

#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/stdio/streams.h>

#include "plugins/gvisor/checkpoint/checkpoint.h"
#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/pod/forwarding.h"
#include "plugins/gvisor/pod/network_handover.h"
#include "plugins/gvisor/pod/out_of_memory.h"
#include "plugins/gvisor/spec/root_image.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kRootBlob = "root";

/// Of a sentry that has ended by itself: what it has answered nobody, an image that it cannot
/// read for example.
void AddLastWords(Pod& pod, Error& error) {
  const auto end = pod.process()->Wait(pod.options().timeout);
  if (!end || (WIFSIGNALED(end->raw) && WTERMSIG(end->raw) == SIGKILL)) {
    return;
  }
  const std::string words = LastWords(KeptSentryLog(pod.context()));
  if (!words.empty() && !error.message.contains(words)) {
    error.message += "; its sentry says: " + words;
  }
}

}  // namespace

Status RootContainer::ReadRequest(const ContainerRequest& request,
                                  std::optional<std::vector<Volume>> volumes) {
  checkpoint_ = request.checkpoint;
  GANTRY_TRY(spec_, MakeSpec({.json = request.spec_json,
                              .rootfs = request.rootfs,
                              .bundle = request.bundle,
                              .kind = pod().root_kind(),
                              .volumes = std::move(volumes)},
                             pod().flags().overlay));
  GANTRY_CHECK_OK(CheckMounts(spec_));
  pod().oom_scores().SetRoot(spec_.oom_score_adj);
  return {};
}

Status RootContainer::Create(const ContainerRequest& request, const Launcher& launcher) {
  GANTRY_CHECK_OK(ReadRequest(request));
  GANTRY_CHECK_OK(CheckRootImage(spec_, pod().options()));
  GANTRY_TRY(const InsideHooks inside, context().BeginHooks());
  if (!checkpoint_.empty()) {
    GANTRY_CHECK_OK(CheckImage(checkpoint_, launcher.runsc()));
  }
  SentryRequest wanted{
      .launcher = launcher, .spec = spec_, .container = id().str(), .bundle = bundle()};
  GANTRY_TRY(wanted.cgroups, context().MakeCgroups(CgroupDevices::kNotLimited));
  GANTRY_TRY(Streams streams, TakeStreams(context().init(), launcher.Console()));
  wanted.terminal = streams.terminal;
  wanted.stdio = std::move(streams.ends);
  auto gofer = StartSentry(pod(), std::move(wanted));
  if (!gofer) {
    RunPoststop();
    return std::unexpected(std::move(gofer).error());
  }
  gofer_ = *std::move(gofer);
  LogHooksLeftOut(inside, pod().record().runs_hooks && spec_.HasRootOfGofer());
  Status made = context().RunHooks(HookPoint::kCreate, pod().process()->pid());
  if (made) {
    made = context().init().Bind(pod().process());
  }
  if (made) {
    made = context().Save(kRootBlob);
  }
  if (!made) {
    IgnoreError(Delete(), "the first error counts");
    return made;
  }
  pod().ApplyOomScores();
  if (gofer_) {
    SetOomScore(pod().context(), *gofer_, spec_.oom_score_adj);
  }
  return {};
}

Result<bool> RootContainer::HasStarted() {
  const auto sentry = pod().sentry();
  return sentry && sentry->root_started();
}

Status StartPod(Pod& pod, const std::string& checkpoint) {
  const auto sentry = pod.sentry();
  if (!sentry || !pod.IsAlive()) {
    return Fail(Code::kFailedPrecondition, "start sandbox '{}': its sentry has ended",
                pod.id().str());
  }
  const bool restores = !checkpoint.empty();
  const Deadline deadline = pod.StepDeadline(restores ? kImageSteps : 1);
  Status started = [&]() -> Status {
    const auto network = [&] { return TakeNetwork(pod, restores); };
    if (!restores) {
      return sentry->StartRoot(network, deadline);
    }
    GANTRY_TRY(const Image image, OpenImage(checkpoint));
    return sentry->StartRoot(network, deadline, image.Fds());
  }();
  if (!started) {
    // It would wait for ever, and there is no second start.
    IgnoreError(pod.process()->Signal(SIGKILL), "it may have ended by itself");
    AddLastWords(pod, started.error());
    return started;
  }
  ForwardPorts(pod);
  return {};
}

Status RootContainer::Start() {
  // It comes again where an engine before this one has been killed while hooks ran.
  const auto sentry = pod().sentry();
  if (!sentry || !sentry->root_started()) {
    GANTRY_CHECK_OK(StartPod(pod(), checkpoint_));
  }
  return RunPoststart();
}

Status RootContainer::Kill(uint32_t signal) {
  const auto sentry = pod().sentry();
  const auto process = pod().process();
  if (!process || process->Ended()) {
    return Fail(Code::kNotFound, "signal container '{}': process already finished", id().str());
  }
  if (sentry && sentry->root_started()) {
    return Signal({.container = id().str()}, signal);
  }
  if (!EndsByDefault(signal)) {
    return Fail(Code::kFailedPrecondition, "signal container '{}': it has not been started",
                id().str());
  }
  return process->Signal(SIGKILL);
}

Status RootContainer::KillAll(uint32_t signal) {
  const auto sentry = pod().sentry();
  const bool ended = pod().process() && !pod().IsAlive();
  return ended || (sentry && sentry->root_started()) ? GvisorContainer::KillAll(signal)
                                                     : Kill(signal);
}

Status RootContainer::ConsoleSignal(uint32_t signal) {
  return Signal({.container = id().str(), .mode = SignalMode::kForeground}, signal);
}

std::optional<ContainerEnd> RootContainer::End() const {
  const auto process = pod().process();
  if (process && !process->Ended()) {
    return std::nullopt;
  }
  return ContainerEnd{.out_of_memory = KilledForMemory(pod(), process)};
}

Status RootContainer::Delete() {
  GANTRY_CHECK_OK(RemoveSentry(pod(), gofer_, bundle()));
  GANTRY_CHECK_OK(StopForwarding(pod()));
  GANTRY_CHECK_OK(GiveBackNetwork(pod()));
  GANTRY_CHECK_OK(ForgetStats());
  GANTRY_CHECK_OK(RemoveFilestores(VolumeFiles(spec_.volumes, pod().id().str())));
  GANTRY_CHECK_OK(RemoveFilestores(FilestorePaths(spec_, pod().id().str())));
  RunPoststop();
  return {};
}

/// With the volumes that its sentry knows. An engine before may not have kept them; where they
/// are not to be found any more, nothing of it can be in them.
Status RootContainer::ReadAgain(const ContainerRequest& request) {
  if (const PodRecord record = pod().record(); record.pid != 0) {
    return ReadRequest(request, record.volumes);
  }
  return ReadRequest(request) ? Status() : ReadRequest(request, std::vector<Volume>());
}

GoferProcess RootContainer::FindGofer() {
  SandboxContext& sandbox = pod().context();
  const PodRecord record = pod().record();
  if (record.gofer_pid == 0) {
    return sandbox.FindSpawned(GoferTag(id().str()));
  }
  return sandbox.Recover({record.gofer_pid}, record.gofer_start_time).value_or(nullptr);
}

Status RootContainer::Recover(const ContainerRequest& request, const std::string& blob) {
  GANTRY_CHECK_OK(ReadAgain(request));
  gofer_ = FindGofer();
  if (blob.empty()) {
    GANTRY_CHECK_OK(Delete());
    return Fail(Code::kAborted, "recover container '{}': its creation was cut short", id().str());
  }
  const auto process = pod().process();
  if (!process) {
    // It ran, it is gone, and its end is lost with whoever kept it.
    constexpr uint32_t kUnknownExitStatus = 255;
    context().init().Exited(ExitedNow(kUnknownExitStatus));
    return {};
  }
  // The core watches its cgroup from now on.
  if (process->Ended() && KilledForMemory(pod(), process)) {
    context().OutOfMemory();
  }
  return context().init().Bind(process);
}

}  // namespace gantry::gvisor
