// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/sandbox.h"

#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/platform.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/launch.h"

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

}  // namespace

Result<std::unique_ptr<RuncSandbox>> RuncSandbox::Build(const SandboxRequest& request,
                                                        SandboxContext& context,
                                                        const Options& base) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  std::unique_ptr<RuncSandbox> sandbox(new RuncSandbox(request.ns, context, std::move(options)));
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(sandbox->pod_, PauselessPod::Make(request, context));
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> RuncSandbox::Make(const SandboxRequest& request,
                                                   SandboxContext& context, const Options& base) {
  GANTRY_TRY(std::unique_ptr<RuncSandbox> sandbox, Build(request, context, base));
  if (sandbox->pod_) {
    // What cannot be is said before anything is made.
    GANTRY_CHECK_OK(sandbox->pod_->Check());
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> RuncSandbox::Recover(const SandboxRequest& request,
                                                      SandboxContext& context, const Options& base,
                                                      const std::string& blob) {
  GANTRY_TRY(std::unique_ptr<RuncSandbox> sandbox, Build(request, context, base));
  if (sandbox->pod_) {
    GANTRY_CHECK_OK(sandbox->pod_->TakeUp(blob));
  }
  return sandbox;
}

Status RuncSandbox::Start() { return pod_ ? pod_->Start() : Status(); }

Status RuncSandbox::Stop(std::chrono::milliseconds limit) {
  return pod_ ? pod_->Stop(limit) : Status();
}

Status RuncSandbox::Shutdown() { return pod_ ? pod_->Shutdown() : Status(); }

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
    GANTRY_TRY(const std::string spec, pod_->WithFiles(request.spec_json));
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
