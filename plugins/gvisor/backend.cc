// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/backend.h"

#include <algorithm>
#include <utility>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/needs.h"
#include "plugins/gvisor/sandbox.h"

namespace gantry::gvisor {

BackendInfo GvisorBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  info.needs = FindNeeds(Handlers(), *runscs_);
  return info;
}

Status GvisorBackend::CheckOptions(const std::string& options_json) {
  GANTRY_TRY(const Options options, ParseOptions(options_json, options_, nullptr));
  Remember(options);
  GANTRY_TRY([[maybe_unused]] const Flags flags, MakeFlags(options.runsc_config, {}));
  if (options.binary_name != Options().binary_name) {
    GANTRY_TRY([[maybe_unused]] const std::string binary, FindRunsc(options));
  }
  return {};
}

void GvisorBackend::Remember(const Options& options) {
  const std::lock_guard lock(mutex_);
  const bool known = std::ranges::any_of(handlers_, [&](const Options& one) {
    return one.binary_name == options.binary_name && one.root == options.root &&
           one.runsc_config == options.runsc_config;
  });
  if (!known && handlers_.size() < kMaxHandlers) {
    handlers_.push_back(options);
  }
}

std::vector<Options> GvisorBackend::Handlers() const {
  const std::lock_guard lock(mutex_);
  return handlers_.empty() ? std::vector<Options>{options_} : handlers_;
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
