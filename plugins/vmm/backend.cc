// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/backend.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/image.h"
#include "plugins/vmm/needs.h"

namespace gantry::vmm {
namespace {

/// With QEMU and the guest's kernel, where both are there.
Result<CanaryQuestion> QuestionOf(const Parts& parts, const VmmOptions& options) {
  CanaryQuestion asked;
  GANTRY_TRY(asked.canary, parts.open_program("gantry-kvm-canary"));
  asked.question.canary = Format("/proc/self/fd/{}", asked.canary.get());
  VmmOptions qemu = options;
  if (options.vmm != Vmm::kQemu) {
    qemu.vmm = Vmm::kQemu;
    qemu.vmm_path.clear();
  }
  const auto image = FindImage(options, parts.images);
  if (image && IsExecutable(VmmProgram(qemu))) {
    asked.question.qemu = VmmProgram(qemu);
    asked.question.kernel = image->kernel;
  }
  return asked;
}

CanaryRuns::Choose ChooserOf(const Parts& parts) {
  return parts.choose_accelerator ? parts.choose_accelerator
                                  : CanaryRuns::Choose(ChooseAccelerator);
}

}  // namespace

VmmBackend::VmmBackend(VmmOptions options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      canary_(parts_.keep_dir, ChooserOf(parts_)) {
  means_.open_program = parts_.open_program;
  means_.images = parts_.images;
  means_.accelerator = [this](const VmmOptions& wanted, Deadline deadline) -> Result<Accelerator> {
    if (wanted.accelerator == AcceleratorChoice::kTcg) {
      return Accelerator::kTcg;
    }
    GANTRY_TRY(const Acceleration found, canary_.Await(deadline));
    return Decide(wanted, found);
  };
}

BackendInfo VmmBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  Acceleration found;
  if (const auto asked = QuestionOf(parts_, options_)) {
    found = canary_.Look(asked->question);
  } else {
    found.words = "KVM is not used: " + asked.error().message;
  }
  info.needs = FindNeeds(options_, found, parts_.images);
  return info;
}

Status VmmBackend::CheckOptions(const std::string& options_json) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const VmmOptions options,
             ParseOptions(options_json, options_, attached_ ? &unknown : nullptr));
  // Kernel and initrd that somebody names are to be there; that none is installed the needs say.
  if (!options.kernel.empty() || !options.initrd.empty()) {
    GANTRY_CHECK_OK(FindImage(options, parts_.images));
  }
  return {};
}

// What the guest agent makes of a spec, with gantry's container maker and cgroup v2.
Result<std::string> VmmBackend::Features(const FeaturesRequest& /*request*/) {
  return R"({"ociVersionMin":"1.0.0","ociVersionMax":"1.2.0","linux":{)"
         R"("namespaces":["cgroup","ipc","mount","pid","uts"],)"
         R"("cgroup":{"v1":false,"v2":true,"systemd":true},"seccomp":{"enabled":true}}})";
}

void VmmBackend::Attach(SandboxContext& /*context*/, const std::vector<BackendHandler>& /*all*/) {
  attached_ = true;
  canary_.Begin([parts = parts_, options = options_] { return QuestionOf(parts, options); });
}

Result<std::unique_ptr<Sandbox>> VmmBackend::Make(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string* blob) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const VmmOptions options, ParseOptions(request.options_json, options_, &unknown));
  return parts_.make_sandbox(request, context, options, means_, blob);
}

Result<std::unique_ptr<Sandbox>> VmmBackend::CreateSandbox(const SandboxRequest& request,
                                                           SandboxContext& context) {
  return Make(request, context, nullptr);
}

Result<std::unique_ptr<Sandbox>> VmmBackend::RecoverSandbox(const SandboxRequest& request,
                                                            SandboxContext& context,
                                                            const std::string& blob) {
  return Make(request, context, &blob);
}

Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json, Parts parts) {
  GANTRY_TRY(VmmOptions options, ParseOptions(options_json, VmmOptions(), nullptr));
  return std::make_unique<VmmBackend>(std::move(options), std::move(parts));
}

}  // namespace gantry::vmm
