// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/backend.h"

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/image.h"
#include "plugins/vmm/needs.h"
#include "plugins/vmm/template/ready_pool.h"

namespace gantry::vmm {
namespace {

/// What a VM of these options would run in: QEMU with the guest's kernel, where both are there. Of
/// another VMM's, QEMU where it is installed.
KvmQuestion QuestionOf(const Parts& parts, const VmmOptions& options) {
  KvmQuestion asked;
  VmmOptions qemu = options;
  if (options.vmm != Vmm::kQemu) {
    qemu.vmm = Vmm::kQemu;
    qemu.vmm_path.clear();
  }
  const auto image = FindImage(options, parts.images);
  if (image && IsExecutable(VmmProgram(qemu))) {
    asked.qemu = VmmProgram(qemu);
    asked.kernel = image->kernel;
  }
  return asked;
}

}  // namespace

VmmBackend::VmmBackend(VmmOptions options, Parts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
  means_.open_program = parts_.open_program;
  means_.images = parts_.images;
  means_.accelerator = [this](const VmmOptions& wanted, Deadline deadline) {
    return ChooseFor(wanted, deadline);
  };
}

Acceleration VmmBackend::Choose(const KvmQuestion& question, const AskFunction& ask) const {
  const auto canary = parts_.open_program("gantry-kvm-canary");
  if (!canary) {
    return {.words = "KVM is not used: " + canary.error().message};
  }
  KvmQuestion asked = question;
  asked.canary = Format("/proc/self/fd/{}", canary->get());
  return parts_.choose_accelerator(asked, ask);
}

Result<Accelerator> VmmBackend::ChooseFor(const VmmOptions& wanted, Deadline deadline) {
  if (wanted.accelerator == AcceleratorChoice::kTcg) {
    return Accelerator::kTcg;
  }
  if (!attached_ || !canary_) {
    return Fail(Code::kFailedPrecondition, "find out whether KVM works: nobody has begun to");
  }
  GANTRY_TRY(const Acceleration found, canary_->Await(QuestionOf(parts_, wanted), deadline));
  return Decide(wanted, found);
}

BackendInfo VmmBackend::Describe() {
  BackendInfo info;
  info.name = kBackendName;
  info.version = kBackendVersion;
  info.pauseless_pods = true;
  const Acceleration found =
      LookAtKvm(parts_.keep_dir, QuestionOf(parts_, options_),
                [this](const KvmQuestion& asked) { return Choose(asked, AskProgram); });
  VmmOptions shown = options_;
  shown.templates = std::max(shown.templates, wanted_templates_.load());
  info.needs = FindNeeds(shown, found, parts_.images);
  return info;
}

Status VmmBackend::CheckOptions(const std::string& options_json) {
  std::vector<std::string> unknown;
  GANTRY_TRY(const VmmOptions options,
             ParseOptions(options_json, options_, attached_ ? &unknown : nullptr));
  if (!attached_ && options.templates > 0) {
    wanted_templates_ = options.templates;
  }
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

void VmmBackend::Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) {
  BeginCanary(context, handlers);
  attached_ = true;
  BeginTemplates(context, handlers);
}

// What is wrong with a handler's options has been said when they were checked.
void VmmBackend::BeginCanary(SandboxContext& context, const std::vector<BackendHandler>& handlers) {
  auto programs = CanaryPrograms::Make(context);
  if (!programs) {
    context.Log(LogLevel::kError, programs.error().message);
    return;
  }
  programs_ = std::move(*programs);
  canary_ = std::make_unique<CanaryRuns>(parts_.keep_dir, [this](const KvmQuestion& asked) {
    return Choose(asked,
                  [this](const ProgramQuestion& program) { return programs_->Ask(program); });
  });
  for (const BackendHandler& handler : handlers) {
    const auto options = ParseOptions(handler.options_json, options_, nullptr);
    if (options && options->accelerator != AcceleratorChoice::kTcg) {
      IgnoreError(canary_->Begin(QuestionOf(parts_, *options)), "its first pod begins it");
    }
  }
}

void VmmBackend::BeginTemplates(SandboxContext& context,
                                const std::vector<BackendHandler>& handlers) {
  std::vector<TemplateHandler> wanted;
  for (const BackendHandler& handler : handlers) {
    auto options = ParseOptions(handler.options_json, options_, nullptr);
    if (options && options->templates > 0) {
      wanted.push_back({handler.name, std::move(*options)});
    }
  }
  if (wanted.empty()) {
    RemoveLeftReadyVms(options_.directory);
    RemoveTemplates(options_.directory);
    return;
  }
  const auto pool = std::make_shared<ReadyPool>(context, means_, std::move(wanted));
  ready_ = pool;
  means_.ready_vms = pool.get();
}

// The canary is told first: what its programs say from then on is kept by nobody.
void VmmBackend::Leave() {
  if (attached_ && canary_) {
    canary_->Leave();
    programs_->Stop();
  }
  if (const auto pool = ready_.load()) {
    pool->Leave();
  }
}

std::vector<BackendCount> VmmBackend::Counts() {
  const auto pool = ready_.load();
  return pool ? pool->Counts() : std::vector<BackendCount>();
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
