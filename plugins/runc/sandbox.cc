// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/sandbox.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/platform.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/pod/pod_files.h>

#include "plugins/runc/launch.h"
#include "plugins/runc/pod/holder.h"

namespace gantry::runc {
namespace {

/// Options as they came with a request: clients send what other runtimes know.
Result<Options> RequestOptions(const std::string& document, const Options& base,
                               SandboxContext& context) {
  std::vector<std::string> unknown;
  GANTRY_TRY(Options options, ParseOptions(document, base, &unknown));
  for (const std::string& key : unknown) {
    context.Log(LogLevel::kInfo, "runtime option '" + key + "': not known to runc, ignored");
  }
  if (!options.shim_cgroup.empty() && base.shim_cgroup.empty()) {
    context.Log(LogLevel::kInfo,
                "runtime option 'ShimCgroup': without effect, there is no shim per container");
  }
  return options;
}

/// A holder starts in a millisecond.
constexpr std::chrono::milliseconds kStartLimit = std::chrono::seconds(30);

}  // namespace

Result<std::unique_ptr<RuncSandbox>> RuncSandbox::Build(const SandboxRequest& request,
                                                        SandboxContext& context,
                                                        const Options& base) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  std::unique_ptr<RuncSandbox> sandbox(new RuncSandbox(request.ns, context, std::move(options)));
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(PodConfig config, ParsePodConfig(request.pod_config));
    sandbox->pod_ = std::make_unique<Pod>(request, std::move(config), nullptr);
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> RuncSandbox::Make(const SandboxRequest& request,
                                                   SandboxContext& context, const Options& base) {
  GANTRY_TRY(std::unique_ptr<RuncSandbox> sandbox, Build(request, context, base));
  if (sandbox->pod_) {
    // What cannot be is said before anything is made.
    GANTRY_TRY([[maybe_unused]] const HolderPlan plan, PlanHolder(request, sandbox->pod_->config));
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> RuncSandbox::Recover(const SandboxRequest& request,
                                                      SandboxContext& context, const Options& base,
                                                      const std::string& blob) {
  GANTRY_TRY(std::unique_ptr<RuncSandbox> sandbox, Build(request, context, base));
  if (sandbox->pod_) {
    GANTRY_CHECK_OK(sandbox->TakeUp(blob));
  }
  return sandbox;
}

Status RuncSandbox::Start() {
  if (!pod_) {
    return {};
  }
  GANTRY_TRY(HolderPlan plan, PlanHolder(pod_->request, pod_->config));
  GANTRY_TRY(plan.program, FindHolder());
  GANTRY_CHECK_OK(MakePodFiles(pod_->request.bundle, pod_->config));
  const Deadline deadline =
      std::chrono::steady_clock::now() + std::min(context_->TimeLeft(), kStartLimit);
  auto holder = StartHolder(
      *context_, plan, deadline, [this](const std::shared_ptr<HostProcess>& process) -> Status {
        GANTRY_CHECK_OK(
            context_->Save(Format("{} {}", process->pid().value, process->start_time())));
        return context_->Bind(process);
      });
  if (!holder) {
    IgnoreError(RemovePodFiles(pod_->request.bundle), "the first error counts");
    return std::unexpected(std::move(holder).error());
  }
  pod_->holder = std::move(*holder);
  return {};
}

Status RuncSandbox::TakeUp(const std::string& blob) {
  const size_t space = blob.find(' ');
  if (space == std::string::npos) {
    EndUnsavedHolder(*context_, kStartLimit);
    return {};
  }
  GANTRY_TRY(const int64_t pid, ParseNumber(std::string_view(blob).substr(0, space)));
  GANTRY_TRY(const int64_t start, ParseNumber(std::string_view(blob).substr(space + 1)));
  auto holder = context_->Recover({static_cast<int32_t>(pid)}, static_cast<uint64_t>(start));
  if (!holder && holder.error().code != Code::kNotFound) {
    return std::unexpected(std::move(holder).error());
  }
  if (!holder) {
    // It held, it is gone, and its end is lost with whoever kept it.
    context_->Exited(UnknownExit());
    return {};
  }
  pod_->holder = std::move(*holder);
  return context_->Bind(pod_->holder);
}

Status RuncSandbox::Stop(std::chrono::milliseconds limit) {
  return pod_ && pod_->holder ? StopHolder(*pod_->holder, limit) : Status();
}

Status RuncSandbox::Shutdown() {
  if (!pod_) {
    return {};
  }
  GANTRY_CHECK_OK(Stop(std::min(context_->TimeLeft(), kStartLimit)));
  return RemovePodFiles(pod_->request.bundle);
}

Result<SandboxInfo> RuncSandbox::Info() {
  SandboxInfo info;
  info["runtime"] = FindRuntime(options_).value_or("");
  return info;
}

Result<std::unique_ptr<RuncContainer>> RuncSandbox::MakeContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, options_, *context_));
  return std::make_unique<RuncContainer>(request, context,
                                         OciCommand(std::move(options), ns_, *context_), *context_);
}

Result<std::unique_ptr<Container>> RuncSandbox::CreateContainer(const ContainerRequest& request,
                                                                ContainerContext& context) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  if (pod_) {
    GANTRY_TRY(const std::string spec,
               WithPodFiles(request.spec_json, pod_->request, pod_->config));
    GANTRY_CHECK_OK(ReplaceFile(request.bundle + "/config.json", spec, 0600));
  }
  GANTRY_CHECK_OK(container->Create(request.spec_json));
  return container;
}

Result<std::unique_ptr<Container>> RuncSandbox::RecoverContainer(const ContainerRequest& request,
                                                                 ContainerContext& context,
                                                                 const std::string& blob) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  GANTRY_CHECK_OK(container->Recover(blob));
  return container;
}

SandboxPlatform RuncSandbox::Platform() { return HostPlatform(); }

}  // namespace gantry::runc
