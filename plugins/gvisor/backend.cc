// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/backend.h"

#include <utility>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/sandbox.h"

namespace gantry::gvisor {

BackendInfo GvisorBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  NodeNeed need;
  need.what = "runsc";
  const auto binary = FindRunsc(options_);
  if (!binary) {
    need.detail = binary.error().message;
  } else if (const auto runsc = runscs_->Get(*binary)) {
    need.met = true;
    need.detail = *binary + ": " + (*runsc)->version;
  } else {
    need.detail = runsc.error().message;
  }
  info.needs.push_back(std::move(need));
  return info;
}

Status GvisorBackend::CheckOptions(const std::string& options_json) {
  GANTRY_TRY(const Options options, ParseOptions(options_json, options_, nullptr));
  GANTRY_TRY([[maybe_unused]] const Flags flags, MakeFlags(options.runsc_config, {}));
  if (options.binary_name != Options().binary_name) {
    GANTRY_TRY([[maybe_unused]] const std::string binary, FindRunsc(options));
  }
  return {};
}

Result<std::unique_ptr<Sandbox>> GvisorBackend::CreateSandbox(const SandboxRequest& request,
                                                              SandboxContext& context) {
  return GvisorSandbox::Make(request, context, options_, runscs_);
}

Result<std::unique_ptr<Sandbox>> GvisorBackend::RecoverSandbox(const SandboxRequest& request,
                                                               SandboxContext& context,
                                                               const std::string& blob) {
  return GvisorSandbox::Recover(request, context, options_, runscs_, blob);
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json) {
  GANTRY_TRY(Options options, ParseOptions(options_json, DefaultOptions(), nullptr));
  return std::make_unique<GvisorBackend>(std::move(options));
}

}  // namespace gantry::gvisor
