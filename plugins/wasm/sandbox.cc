// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/sandbox.h"

#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/platform.h>

namespace gantry::wasm {
namespace {

/// Options as they came with a request: clients send what other runtimes know.
Result<Options> RequestOptions(const std::string& document, const Options& base,
                               SandboxContext& context) {
  std::vector<std::string> unknown;
  GANTRY_TRY(Options options, ParseOptions(document, base, &unknown));
  for (const std::string& key : unknown) {
    context.Log(LogLevel::kInfo, Format("runtime option '{}': not known to wasm, ignored", key));
  }
  return options;
}

/// Which containerd is asked. Source: containerd 2.3, defaults/defaults_unix.go.
std::string AddressOf(const Options& options, const SandboxRequest& request) {
  for (const std::string* known : {&options.containerd_address, &request.containerd_address}) {
    if (!known->empty()) {
      return *known;
    }
  }
  return "/run/containerd/containerd.sock";
}

}  // namespace

Result<std::unique_ptr<WasmSandbox>> WasmSandbox::Build(const SandboxRequest& request,
                                                        SandboxContext& context,
                                                        const Options& base, const Means& means) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, base, context));
  options.containerd_address = AddressOf(options, request);
  std::unique_ptr<WasmSandbox> sandbox(
      new WasmSandbox(request.ns, context, std::move(options), means));
  if (request.kind == SandboxKind::kPauseless) {
    GANTRY_TRY(sandbox->pod_, PauselessPod::Make(request, context));
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> WasmSandbox::Make(const SandboxRequest& request,
                                                   SandboxContext& context, const Options& base,
                                                   const Means& means) {
  GANTRY_TRY(std::unique_ptr<WasmSandbox> sandbox, Build(request, context, base, means));
  if (sandbox->pod_) {
    // What cannot be is said before anything is made.
    GANTRY_CHECK_OK(sandbox->pod_->Check());
  }
  return sandbox;
}

Result<std::unique_ptr<Sandbox>> WasmSandbox::Recover(const SandboxRequest& request,
                                                      SandboxContext& context, const Options& base,
                                                      const Means& means, const std::string& blob) {
  GANTRY_TRY(std::unique_ptr<WasmSandbox> sandbox, Build(request, context, base, means));
  if (sandbox->pod_) {
    GANTRY_CHECK_OK(sandbox->pod_->TakeUp(blob));
  }
  return sandbox;
}

Status WasmSandbox::Start() { return pod_ ? pod_->Start() : Status(); }

Status WasmSandbox::Stop(std::chrono::milliseconds limit) {
  return pod_ ? pod_->Stop(limit) : Status();
}

Status WasmSandbox::Shutdown() { return pod_ ? pod_->Shutdown() : Status(); }

Result<SandboxInfo> WasmSandbox::Info() { return SandboxInfo{{"engine", options_.engine}}; }

SandboxPlatform WasmSandbox::Platform() { return HostPlatform(); }

Result<std::unique_ptr<WasmContainer>> WasmSandbox::MakeContainer(const ContainerRequest& request,
                                                                  ContainerContext& context) {
  GANTRY_TRY(Options options, RequestOptions(request.options_json, options_, context_));
  ContainerRequest wanted = request;
  if (pod_) {
    GANTRY_TRY(wanted.spec_json, pod_->WithFiles(request.spec_json));
  }
  auto launcher =
      std::make_shared<const Launcher>(std::move(wanted), ns_, context_, context, options, means_);
  return std::make_unique<WasmContainer>(std::move(launcher), context_, context);
}

Result<std::unique_ptr<Container>> WasmSandbox::CreateContainer(const ContainerRequest& request,
                                                                ContainerContext& context) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  GANTRY_CHECK_OK(container->Create());
  return container;
}

Result<std::unique_ptr<Container>> WasmSandbox::RecoverContainer(const ContainerRequest& request,
                                                                 ContainerContext& context,
                                                                 const std::string& /*blob*/) {
  GANTRY_TRY(auto container, MakeContainer(request, context));
  GANTRY_CHECK_OK(container->Recover());
  return container;
}

}  // namespace gantry::wasm
