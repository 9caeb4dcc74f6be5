// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/sandbox.h"

#include <signal.h>

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/platform.h>
#include <gantry/toolkit/cgroup/move.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/pod/pod_files.h>

#include "plugins/gvisor/container/root_container.h"
#include "plugins/gvisor/container/sub_container.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/launch/launcher.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/pause/pause_image.h"
#include "plugins/gvisor/pod/forwarding.h"
#include "plugins/gvisor/pod/network_handover.h"
#include "plugins/gvisor/pod/own_root.h"
#include "plugins/gvisor/warm/warm_entry.h"

namespace gantry::gvisor {
namespace {

/// Options as they came with a request: clients send what other runtimes know.
Result<Options> RequestOptions(const std::string& document, const Options& base,
                               SandboxContext& context) {
  std::vector<std::string> unknown;
  GANTRY_TRY(Options options, ParseOptions(document, base, &unknown));
  for (const std::string& key : unknown) {
    context.Log(LogLevel::kInfo, "runtime option '" + key + "': not known to gvisor, ignored");
  }
  return options;
}

ContainerKind RootKindOf(SandboxKind kind) {
  switch (kind) {
    case SandboxKind::kImplied:
      return ContainerKind::kAlone;
    case SandboxKind::kPauseless:
      return ContainerKind::kOwnRoot;
    case SandboxKind::kPaused:
      break;
  }
  return ContainerKind::kRoot;
}

Result<std::shared_ptr<const Launcher>> LauncherFor(Pod& pod, RunscRegistry& runscs,
                                                    const std::string& bundle) {
  const Options& options = pod.options();
  GANTRY_TRY(const std::string binary, FindRunsc(options));
  GANTRY_TRY(auto launcher,
             runscs.GetLauncher(binary, pod.context(), options.root,
                                {.platform = pod.flags().platform,
                                 .directories = CanaryDirectories(bundle, options.root),
                                 .limit = options.timeout}));
  if (!launcher->IsDirect()) {
    runscs.CountCreate();
  }
  return launcher;
}

}  // namespace

Result<std::unique_ptr<GvisorSandbox>> GvisorSandbox::Build(const SandboxRequest& request,
                                                            SandboxContext& context,
                                                            const Options& base,
                                                            GvisorShared shared) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  GANTRY_TRY(Flags flags, MakeFlags(RunscFlags(options), request.annotations));
  PodConfig config;
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(config, ParsePodConfig(request.pod_config));
    flags.logs.user = UserLogIn(LogFolderOf(request.pod_config));
  }
  auto pod = std::make_shared<Pod>(request.id, request.ns, context, std::move(options),
                                   std::move(flags), RootKindOf(request.kind));
  return std::unique_ptr<GvisorSandbox>(
      new GvisorSandbox(request, std::move(config), std::move(pod), std::move(shared)));
}

Result<std::unique_ptr<Sandbox>> GvisorSandbox::Make(const SandboxRequest& request,
                                                     SandboxContext& context, const Options& base,
                                                     GvisorShared shared) {
  GANTRY_TRY(auto sandbox, Build(request, context, base, std::move(shared)));
  GANTRY_TRY([[maybe_unused]] const std::string binary, FindRunsc(sandbox->pod_->options()));
  for (const std::string& name : sandbox->pod_->flags().unknown_bundles) {
    context.Log(LogLevel::kWarning, Format("annotation '{}{}': no bundle of flags that runsc has, "
                                           "ignored",
                                           kBundleAnnotation, name));
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> GvisorSandbox::Recover(const SandboxRequest& request,
                                                        SandboxContext& context,
                                                        const Options& base, GvisorShared shared,
                                                        const std::string& blob) {
  GANTRY_TRY(auto sandbox, Build(request, context, base, std::move(shared)));
  GANTRY_CHECK_OK(sandbox->TakeUp(blob));
  return sandbox;
}

Status GvisorSandbox::TakeUp(const std::string& blob) {
  if (blob.empty()) {
    // What was begun is removed with the container that had begun it, or here.
    return has_own_root() ? RemoveSentry(*pod_, nullptr, request_.bundle) : Status();
  }
  GANTRY_TRY(PodRecord record, PodRecord::FromJson(blob));
  pod_->Load(record);
  if (record.host_network) {
    pod_->UseHostNetwork();
  }
  SandboxContext& context = pod_->context();
  auto process = context.Recover({record.pid}, record.start_time);
  if (!process && process.error().code != Code::kNotFound) {
    return std::unexpected(std::move(process).error());
  }
  if (!process) {
    constexpr uint32_t kUnknownExitStatus = 255;
    if (has_own_root()) {
      context.Exited(ExitedNow(kUnknownExitStatus));
    }
    return {};
  }
  auto sentry =
      std::make_shared<Sentry>(context, pod_->RootId(), record.socket, pod_->StateSaver());
  pod_->Have(*process, sentry);
  const Status recovered = sentry->Recover(record.state, pod_->StepDeadline());
  if (!recovered && !(*process)->Ended()) {
    context.Log(LogLevel::kWarning, "take up the sentry: " + recovered.error().message);
  }
  if (sentry->root_started()) {
    ForwardPorts(*pod_);
  }
  return has_own_root() ? context.Bind(*process) : Status();
}

void GvisorSandbox::SayWhatIsIgnored() {
  const auto say = [&](const std::string& what) {
    pod_->context().Log(LogLevel::kWarning, what + ", ignored: the sentry has its own");
  };
  if (config_.pid == NamespaceMode::kNode) {
    say("the node's pid namespace is asked for");
  }
  if (config_.ipc == NamespaceMode::kNode) {
    say("the node's ipc namespace is asked for");
  }
  for (const auto& [name, value] : config_.sysctls) {
    if (name != "fs.nr_open" && name != kNoIpv6) {
      say(Format("sysctl '{}'", name));
    }
  }
}

Status GvisorSandbox::StartCold(const Launcher& launcher) {
  GANTRY_TRY(const Spec spec,
             MakeOwnRootSpec(OwnRootOf(request_, config_), request_.bundle, pod_->flags().overlay));
  SentryRequest wanted{
      .launcher = launcher, .spec = spec, .container = "", .bundle = request_.bundle};
  wanted.cgroups = request_.cgroups;
  GANTRY_TRY(wanted.image, PauseImage());
  GANTRY_TRY([[maybe_unused]] const GoferProcess none, StartSentry(*pod_, std::move(wanted)));
  return StartPod(*pod_);
}

Status GvisorSandbox::StartIn(const WarmEntry& entry) {
  Status given = GiveTo(
      *pod_, entry,
      {.bundle = request_.bundle, .cgroups = request_.cgroups, .netns = request_.netns_path});
  if (!given) {
    Discard(entry);
    return given;
  }
  // The kernel is to be waited for, and nothing of the pod's own runs before this returns.
  auto moved = std::async(cgroup::MoveIntoCgroups, entry.process->pid(), request_.cgroups);
  Status started = StartPod(*pod_);
  if (started && !config_.hostname.empty()) {
    started = SetHostname(*pod_, config_.hostname, pod_->StepDeadline());
  }
  Status in_place = moved.get();
  return started ? in_place : started;
}

/// In a sentry that waits for a pod like this, if there is one.
bool GvisorSandbox::StartWarm(const Runsc& runsc, ProcessPool::Starting& starting) {
  if (!shared_.warm) {
    return false;
  }
  SandboxContext& context = pod_->context();
  const WarmKey key =
      MakeWarmKey(runsc, pod_->flags(), OwnRootOf(request_, config_), request_.cgroups);
  const ProcessPool::Taken taken = starting.Take(
      [&](const PooledProcess& one) { return DifferenceOf(WarmEntryOf(one).key, key); });
  if (!taken.process) {
    context.Log(LogLevel::kInfo, Format("no pre-booted sandbox for it: {}", taken.missing));
    return false;
  }
  const Status started = StartIn(WarmEntryOf(*taken.process));
  starting.Report(taken.handler, started.has_value());
  if (!started) {
    context.Log(LogLevel::kWarning,
                "a pre-booted sandbox was of no use, it gets another: " + started.error().message);
    IgnoreError(RemoveSentry(*pod_, nullptr, request_.bundle), "it is replaced");
    // Else what is forwarded would go on to this one.
    IgnoreError(StopForwarding(*pod_), "its namespace goes with the pod");
    IgnoreError(GiveBackNetwork(*pod_), "who takes it next says what is wrong");
  }
  return started.has_value();
}

Status GvisorSandbox::StartOwnRoot() {
  GANTRY_TRY(const auto launcher, LauncherFor(*pod_, *shared_.runscs, request_.bundle));
  GANTRY_CHECK_OK(MakePodFiles(request_.bundle, config_));
  ProcessPool::Starting starting(shared_.warm.get());
  const bool is_warm = launcher->IsDirect() && StartWarm(launcher->runsc(), starting);
  if (!is_warm) {
    GANTRY_CHECK_OK(StartCold(*launcher));
  }
  return pod_->context().Bind(pod_->process());
}

Status GvisorSandbox::Start() {
  if (!has_own_root()) {
    return {};
  }
  SayWhatIsIgnored();
  Status started = StartOwnRoot();
  if (!started) {
    IgnoreError(Shutdown(), "the first error counts");
  }
  return started;
}

Status GvisorSandbox::Stop(std::chrono::milliseconds limit) {
  const auto sentry = pod_->sentry();
  const auto process = pod_->process();
  if (!sentry || !process || process->Ended()) {
    return {};
  }
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  const auto asked = sentry->manager().Signal({.container = pod_->RootId()}, SIGTERM, deadline);
  const auto politely = std::min<std::chrono::milliseconds>(limit, std::chrono::seconds(2));
  if (!asked || !process->Wait(politely)) {
    IgnoreError(process->Signal(SIGKILL), "it may have ended by itself");
  }
  GANTRY_TRY([[maybe_unused]] const WaitStatus end, process->Wait(Left(deadline)));
  return {};
}

Status GvisorSandbox::Shutdown() {
  GANTRY_CHECK_OK(RemoveSentry(*pod_, nullptr, request_.bundle));
  GANTRY_CHECK_OK(StopForwarding(*pod_));
  GANTRY_CHECK_OK(GiveBackNetwork(*pod_));
  GANTRY_CHECK_OK(RemoveFilestores(VolumeFiles(pod_->record().volumes, pod_->id().str())));
  return has_own_root() ? RemovePodFiles(request_.bundle) : Status();
}

Result<SandboxInfo> GvisorSandbox::Info() {
  SandboxInfo info;
  info["runtime"] = pod_->record().runsc;
  return info;
}

SandboxPlatform GvisorSandbox::Platform() { return HostPlatform(); }

Result<std::unique_ptr<Container>> GvisorSandbox::CreateSubContainer(ContainerRequest request,
                                                                     ContainerContext& context) {
  if (has_own_root()) {
    GANTRY_TRY(request.spec_json, WithPodFiles(request.spec_json, request_, config_));
    GANTRY_CHECK_OK(ReplaceFile(request.bundle + "/config.json", request.spec_json, 0600));
  }
  auto container = std::make_unique<SubContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Create());
  return container;
}

ContainerKind GvisorSandbox::KindOfNew() const {
  const bool has_root = has_own_root() || pod_->sentry();
  return has_root ? ContainerKind::kFurther : pod_->root_kind();
}

ContainerKind GvisorSandbox::KindOfMade(const ContainerId& id, const std::string& blob) const {
  const std::string root = pod_->record().root;
  // One that was begun only may be the root of a sentry that nobody has written down.
  const bool begun = blob.empty() && !has_own_root() && root.empty();
  return begun || root == id.str() ? pod_->root_kind() : ContainerKind::kFurther;
}

Result<std::unique_ptr<Container>> GvisorSandbox::CreateContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  const ProcessPool::Starting starting(shared_.warm.get());
  if (KindOfNew() == ContainerKind::kFurther) {
    return CreateSubContainer(request, context);
  }
  GANTRY_TRY(const auto launcher, LauncherFor(*pod_, *shared_.runscs, request.bundle));
  auto container = std::make_unique<RootContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Create(request, *launcher));
  return container;
}

Result<std::unique_ptr<Container>> GvisorSandbox::RecoverContainer(const ContainerRequest& request,
                                                                   ContainerContext& context,
                                                                   const std::string& blob) {
  if (KindOfMade(request.id, blob) != ContainerKind::kFurther) {
    auto container = std::make_unique<RootContainer>(request, context, pod_);
    GANTRY_CHECK_OK(container->Recover(request, blob));
    return container;
  }
  auto container = std::make_unique<SubContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Recover(blob));
  return container;
}

}  // namespace gantry::gvisor
