// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/backend.h"

#include <utility>

#include "plugins/wasm/needs.h"
#include "plugins/wasm/sandbox.h"

namespace gantry::wasm {

BackendInfo WasmBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  info.needs = FindNeeds(parts_);
  return info;
}

Status WasmBackend::CheckOptions(const std::string& options_json) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const Options options,
             ParseOptions(options_json, options_, attached_ ? &unknown : nullptr));
  // Without the engine that is the default the needs say it, and native containers are made.
  if (options.engine != kWasmEdge || has_wasmedge_) {
    return {};
  }
  const NodeNeed need = WasmEdgeNeed(parts_);
  if (!need.met) {
    return Fail(Code::kFailedPrecondition, "check option 'engine', '{}': {}", options.engine,
                need.detail);
  }
  has_wasmedge_ = true;
  return {};
}

// What gantry-init makes of a spec, and gantry-wasm in the same way. Source: docs/gantry-init.md.
Result<std::string> WasmBackend::Features(const FeaturesRequest& /*request*/) {
  return R"({"ociVersionMin":"1.0.0","ociVersionMax":"1.2.0","linux":{)"
         R"("namespaces":["cgroup","ipc","mount","network","pid","time","user","uts"],)"
         R"("cgroup":{"v1":true,"v2":true,"systemd":true},"seccomp":{"enabled":true},)"
         R"("mountExtensions":{"idmap":{"enabled":true}}}})";
}

void WasmBackend::Attach(SandboxContext& context, const std::vector<BackendHandler>& /*all*/) {
  artifacts_ = parts_.make_artifacts(context, options_);
  attached_ = true;
}

void WasmBackend::Leave() {
  if (attached_ && artifacts_) {
    artifacts_->Leave();
  }
}

std::vector<BackendCount> WasmBackend::Counts() {
  return attached_ && artifacts_ ? artifacts_->Counts() : std::vector<BackendCount>();
}

Means WasmBackend::MeansNow() const {
  return {parts_.open_program, artifacts_, parts_.find_in_image};
}

Result<std::unique_ptr<Sandbox>> WasmBackend::CreateSandbox(const SandboxRequest& request,
                                                            SandboxContext& context) {
  return WasmSandbox::Make(request, context, options_, MeansNow());
}

Result<std::unique_ptr<Sandbox>> WasmBackend::RecoverSandbox(const SandboxRequest& request,
                                                             SandboxContext& context,
                                                             const std::string& blob) {
  return WasmSandbox::Recover(request, context, options_, MeansNow(), blob);
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json, Parts parts) {
  GANTRY_TRY(Options options, ParseOptions(options_json, Options(), nullptr));
  return std::make_unique<WasmBackend>(std::move(options), std::move(parts));
}

}  // namespace gantry::wasm
