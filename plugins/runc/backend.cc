// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/backend.h"

#include <utility>
#include <vector>

#include "plugins/runc/features.h"
#include "plugins/runc/needs.h"
#include "plugins/runc/sandbox.h"

namespace gantry::runc {

BackendInfo RuncBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  info.needs = FindNeeds(options_);
  return info;
}

Status RuncBackend::CheckOptions(const std::string& options_json) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const Options options,
             ParseOptions(options_json, options_, attached_ ? &unknown : nullptr));
  // Without a name the node's needs say it.
  if (!options.binary_name.empty()) {
    GANTRY_TRY(const std::string binary, FindRuntime(options));
    if (const std::string why = WhyItCannotRun(binary, cgroup::NodeCgroups::At()); !why.empty()) {
      return Fail(Code::kFailedPrecondition, "check option 'BinaryName': {}", why);
    }
  }
  return {};
}

Result<std::string> RuncBackend::Features(const FeaturesRequest& request) {
  std::vector<std::string> ignored;
  GANTRY_TRY(const Options options, ParseOptions(request.options_json, options_, &ignored));
  GANTRY_TRY(const std::string binary, FindRuntime(options));
  return FeaturesOf(binary, request.keep_dir);
}

Result<std::unique_ptr<Sandbox>> RuncBackend::CreateSandbox(const SandboxRequest& request,
                                                            SandboxContext& context) {
  return RuncSandbox::Make(request, context, options_);
}

Result<std::unique_ptr<Sandbox>> RuncBackend::RecoverSandbox(const SandboxRequest& request,
                                                             SandboxContext& context,
                                                             const std::string& blob) {
  return RuncSandbox::Recover(request, context, options_, blob);
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json) {
  GANTRY_TRY(Options options, ParseOptions(options_json, DefaultOptions(), nullptr));
  return std::make_unique<RuncBackend>(std::move(options));
}

}  // namespace gantry::runc
