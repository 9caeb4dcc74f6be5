// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sandbox.h"

#include <signal.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <gantry/files.h>
#include <gantry/format.h>
#include <gantry/platform.h>
#include <gantry/pod_files.h>

#include "plugins/gvisor/pause/pause_image.h"
#include "plugins/gvisor/pause/pause_spec.h"
#include "plugins/gvisor/pod_forward.h"
#include "plugins/gvisor/pod_network.h"
#include "plugins/gvisor/root_container.h"
#include "plugins/gvisor/sub_container.h"

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

std::map<std::string, std::string> FlagsOf(const Options& options) {
  std::map<std::string, std::string> flags = options.runsc_config;
  if (!options.log_path.empty()) {
    flags.emplace("debug-log", options.log_path);
  }
  if (options.log_level == "debug") {
    flags.emplace("debug", "true");
  }
  return flags;
}

Result<std::shared_ptr<const Runsc>> ProvenRunsc(Pod& pod, Runscs& runscs,
                                                 const std::string& bundle) {
  const Options& options = pod.options();
  GANTRY_TRY(const std::string binary, FindRunsc(options));
  return runscs.GetProven(binary, pod.context(), options.root,
                          {.platform = pod.flags().platform,
                           .directories = CanaryDirectories(bundle, options.root),
                           .limit = options.timeout});
}

}  // namespace

Result<std::unique_ptr<GvisorSandbox>> GvisorSandbox::Build(const SandboxRequest& request,
                                                            SandboxContext& context,
                                                            const Options& base,
                                                            std::shared_ptr<Runscs> runscs) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  GANTRY_TRY(Flags flags, MakeFlags(FlagsOf(options), request.annotations));
  PodConfig config;
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(config, ParsePodConfig(request.pod_config));
  }
  auto pod =
      std::make_shared<Pod>(request.id, request.ns, context, std::move(options), std::move(flags));
  if (request.kind == SandboxKind::kImplied) {
    pod->UseForOne();
  }
  return std::unique_ptr<GvisorSandbox>(
      new GvisorSandbox(request, std::move(config), std::move(pod), std::move(runscs)));
}

Result<std::unique_ptr<Sandbox>> GvisorSandbox::Make(const SandboxRequest& request,
                                                     SandboxContext& context, const Options& base,
                                                     std::shared_ptr<Runscs> runscs) {
  GANTRY_TRY(auto sandbox, Build(request, context, base, std::move(runscs)));
  GANTRY_TRY([[maybe_unused]] const std::string binary, FindRunsc(sandbox->pod_->options()));
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> GvisorSandbox::Recover(const SandboxRequest& request,
                                                        SandboxContext& context,
                                                        const Options& base,
                                                        std::shared_ptr<Runscs> runscs,
                                                        const std::string& blob) {
  GANTRY_TRY(auto sandbox, Build(request, context, base, std::move(runscs)));
  GANTRY_CHECK_OK(sandbox->TakeUp(blob));
  return sandbox;
}

Status GvisorSandbox::TakeUp(const std::string& blob) {
  if (blob.empty()) {
    // What was begun is removed with the container that had begun it, or here.
    return is_own_root() ? RemoveSentry(*pod_, nullptr, request_.bundle) : Status();
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
    if (is_own_root()) {
      context.Exited(ExitedNow(kUnknownExitStatus));
    }
    return {};
  }
  const std::string root = record.root.empty() ? pod_->id().str() : record.root;
  auto sentry = std::make_shared<Sentry>(context, root, record.socket, pod_->StateSaver());
  pod_->Have(*process, sentry);
  const Status recovered = sentry->Recover(record.state, pod_->StepDeadline());
  if (!recovered && !(*process)->Ended()) {
    context.Log(LogLevel::kWarning, "take up the sentry: " + recovered.error().message);
  }
  if (sentry->root_started()) {
    ForwardPorts(*pod_);
  }
  return is_own_root() ? context.Bind(*process) : Status();
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
    if (name != "fs.nr_open") {
      say(Format("sysctl '{}'", name));
    }
  }
}

Result<Spec> GvisorSandbox::MakeRootSpec() const {
  PauseSpecRequest asked;
  asked.root = request_.bundle;
  asked.hostname = config_.hostname;
  if (config_.network == NamespaceMode::kNode) {
    asked.network.reset();
  } else {
    asked.network = request_.netns_path;
  }
  asked.sysctls = config_.sysctls;
  if (config_.user == NamespaceMode::kPod) {
    asked.uids = config_.uids;
    asked.gids = config_.gids;
  }
  asked.annotations = request_.annotations;
  return MakeSpec({.json = PauseSpec(asked),
                   .rootfs = request_.bundle,
                   .bundle = request_.bundle,
                   .is_own_root = true},
                  pod_->flags().overlay);
}

Status GvisorSandbox::StartOwnRoot() {
  GANTRY_TRY(const auto runsc, ProvenRunsc(*pod_, *runscs_, request_.bundle));
  GANTRY_TRY(const Spec spec, MakeRootSpec());
  GANTRY_CHECK_OK(MakePodFiles(request_.bundle, config_));
  SentryPlan plan{.runsc = *runsc, .spec = spec, .container = "", .bundle = request_.bundle};
  plan.cgroups = request_.cgroups;
  GANTRY_TRY(plan.image, PauseImage());
  GANTRY_TRY([[maybe_unused]] const GoferProcess none, StartSentry(*pod_, std::move(plan)));
  GANTRY_CHECK_OK(StartPod(*pod_));
  return pod_->context().Bind(pod_->process());
}

Status GvisorSandbox::Start() {
  if (!is_own_root()) {
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
  const auto asked = sentry->manager().Signal({.container = pod_->id().str()}, SIGTERM, deadline);
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
  return is_own_root() ? RemovePodFiles(request_.bundle) : Status();
}

Result<SandboxInfo> GvisorSandbox::Info() {
  SandboxInfo info;
  info["runtime"] = pod_->record().runsc;
  return info;
}

SandboxPlatform GvisorSandbox::Platform() { return HostPlatform(); }

Result<std::unique_ptr<Container>> GvisorSandbox::CreateSubContainer(ContainerRequest request,
                                                                     ContainerContext& context) {
  if (is_own_root()) {
    GANTRY_TRY(request.spec_json, WithPodFiles(request.spec_json, request_, config_));
    GANTRY_CHECK_OK(ReplaceFile(request.bundle + "/config.json", request.spec_json, 0600));
  }
  auto container = std::make_unique<SubContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Create());
  return container;
}

Result<std::unique_ptr<Container>> GvisorSandbox::CreateContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  if (is_own_root() || pod_->sentry()) {
    return CreateSubContainer(request, context);
  }
  GANTRY_TRY(const auto runsc, ProvenRunsc(*pod_, *runscs_, request.bundle));
  auto container = std::make_unique<RootContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Create(request, *runsc));
  return container;
}

Result<std::unique_ptr<Container>> GvisorSandbox::RecoverContainer(const ContainerRequest& request,
                                                                   ContainerContext& context,
                                                                   const std::string& blob) {
  const std::string root = pod_->record().root;
  const bool is_root = blob.empty() ? !is_own_root() && (root.empty() || root == request.id.str())
                                    : root == request.id.str();
  if (is_root) {
    auto container = std::make_unique<RootContainer>(request, context, pod_);
    GANTRY_CHECK_OK(container->Recover(request, blob));
    return container;
  }
  auto container = std::make_unique<SubContainer>(request, context, pod_);
  GANTRY_CHECK_OK(container->Recover(blob));
  return container;
}

}  // namespace gantry::gvisor
