// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/backend.h"

#include <algorithm>
#include <utility>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/needs.h"

namespace gantry::gvisor {

BackendInfo GvisorBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  info.needs = FindNeeds(Handlers(), *runscs_);
  return info;
}

/// Mounts may have their container's id mappings; others are refused when it is made.
Result<std::string> GvisorBackend::Features([[maybe_unused]] const FeaturesRequest& request) {
  return R"({"ociVersionMin":"1.0.0","ociVersionMax":"1.2.0","linux":{)"
         R"("namespaces":["cgroup","ipc","mount","network","pid","user","uts"],)"
         R"("mountExtensions":{"idmap":{"enabled":true}}}})";
}

Status GvisorBackend::CheckOptions(const std::string& options_json) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const Options options,
             ParseOptions(options_json, options_, attached_ ? &unknown : nullptr));
  if (!attached_) {
    Remember(options);
  }
  GANTRY_TRY(const Flags flags, MakeFlags(RunscFlags(options), {}));
  if (options.warm > 0 && flags.network == Network::kHost) {
    return Fail(Code::kInvalidArgument,
                "check option 'warm': with runsc_config.network 'host' a sandbox is booted in its "
                "pod's network namespace, so none can be booted beforehand: set it to 0");
  }
  if (options.warm > 0 && flags.logs.NamePods()) {
    return Fail(Code::kInvalidArgument,
                "check option 'warm': the logs of sandboxes are named by their pods (%ID% or %CID% "
                "in runsc_config.debug-log, panic-log or coverage-report, in log_path, or "
                "debug-to-user-log), which one that is booted beforehand does not have: set it to "
                "0, or leave that out");
  }
  if (options.binary_name != Options().binary_name) {
    GANTRY_TRY([[maybe_unused]] const std::string binary, FindRunsc(options));
  }
  return {};
}

void GvisorBackend::Remember(const Options& options) {
  const MutexLock lock(mutex_);
  const bool known = std::ranges::any_of(handlers_, [&](const Options& one) {
    return one.binary_name == options.binary_name && one.root == options.root &&
           one.runsc_config == options.runsc_config;
  });
  if (!known && handlers_.size() < kMaxHandlers) {
    handlers_.push_back(options);
  }
}

std::vector<Options> GvisorBackend::Handlers() const {
  const MutexLock lock(mutex_);
  return handlers_.empty() ? std::vector<Options>{options_} : handlers_;
}

void GvisorBackend::Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) {
  attached_ = true;
  std::vector<WarmHandler> warm;
  for (const BackendHandler& handler : handlers) {
    // What is wrong with its options has been said when they were checked.
    auto options = ParseOptions(handler.options_json, options_, nullptr);
    auto flags = options ? MakeFlags(RunscFlags(*options), {})
                         : Result<Flags>(std::unexpected(options.error()));
    if (flags && options->warm > 0 && flags->network != Network::kHost && !flags->logs.NamePods()) {
      warm.push_back({handler.name, std::move(*options), std::move(*flags)});
    }
  }
  if (!warm.empty()) {
    const MutexLock lock(mutex_);
    warm_ = MakeWarmPool(context, std::move(warm), runscs_);
  }
}

GvisorShared GvisorBackend::Shared() const {
  const MutexLock lock(mutex_);
  return {runscs_, warm_};
}

void GvisorBackend::Leave() {
  if (const auto warm = Shared().warm) {
    warm->Leave();
  }
}

std::vector<BackendCount> GvisorBackend::Counts() {
  const auto warm = Shared().warm;
  std::vector<BackendCount> counts = warm ? warm->Counts() : std::vector<BackendCount>();
  if (const uint64_t creates = runscs_->creates(); creates > 0) {
    counts.push_back({"", "runsc_creates", creates});
  }
  return counts;
}

Result<std::unique_ptr<Sandbox>> GvisorBackend::CreateSandbox(const SandboxRequest& request,
                                                              SandboxContext& context) {
  return GvisorSandbox::Make(request, context, options_, Shared());
}

Result<std::unique_ptr<Sandbox>> GvisorBackend::RecoverSandbox(const SandboxRequest& request,
                                                               SandboxContext& context,
                                                               const std::string& blob) {
  return GvisorSandbox::Recover(request, context, options_, Shared(), blob);
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json) {
  GANTRY_TRY(Options options, ParseOptions(options_json, DefaultOptions(), nullptr));
  return std::make_unique<GvisorBackend>(std::move(options));
}

}  // namespace gantry::gvisor
