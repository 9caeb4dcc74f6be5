// SPDX-License-Identifier: Apache-2.0
//
// The vmm backend: each pod a virtual machine with a kernel of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "plugins/vmm/machine/canary.h"
#include "plugins/vmm/machine/canary_programs.h"
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

class ReadyPool;

inline constexpr const char* kBackendName = "vmm";
inline constexpr const char* kBackendVersion = "0.1.0";

/// What a sandbox is made of. `blob`: of one that was there before a restart; null: a new one.
/// `options`: the handler's, with those of the request. `means` outlives it.
using MakeSandbox = std::function<Result<std::unique_ptr<Sandbox>>(
    const SandboxRequest& request, SandboxContext& context, const VmmOptions& options,
    const MachineMeans& means, const std::string* blob)>;

/// What a test has others of.
struct Parts {
  std::function<Result<UniqueFd>(std::string_view name)> open_program;
  MakeSandbox make_sandbox;
  /// Where kernel and initrd are installed.
  std::string images;
  /// Where what was found out is kept until the node restarts.
  std::string keep_dir = "/run/gantry-vmm";
  /// Finds out whether KVM works, with programs that `ask` runs.
  std::function<Acceleration(const KvmQuestion& question, const AskFunction& ask)>
      choose_accelerator = ChooseAccelerator;
};

/// Thread: workers, any number of calls at a time.
class VmmBackend final : public SandboxBackend {
 public:
  VmmBackend(VmmOptions options, Parts parts);
  VmmBackend(const VmmBackend&) = delete;
  VmmBackend& operator=(const VmmBackend&) = delete;

  ~VmmBackend() override { Leave(); }

  /// Blocks: up to 3 s, where it is not known yet whether KVM works, and 2 s for each program.
  BackendInfo Describe() override;
  Status CheckOptions(const std::string& options_json) override;
  Result<std::string> Features(const FeaturesRequest& request) override;
  /// Begins to find out whether KVM works with what each handler names, on a thread of its own, and
  /// to make templates of handlers that want them, on another.
  void Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;
  void Leave() override;
  std::vector<BackendCount> Counts() override;

 private:
  Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request, SandboxContext& context,
                                        const std::string* blob);
  void BeginCanary(SandboxContext& context, const std::vector<BackendHandler>& handlers);
  void BeginTemplates(SandboxContext& context, const std::vector<BackendHandler>& handlers);
  Result<Accelerator> ChooseFor(const VmmOptions& wanted, Deadline deadline);
  Acceleration Choose(const KvmQuestion& question, const AskFunction& ask) const;

  const VmmOptions options_;
  const Parts parts_;
  MachineMeans means_;
  /// Set behind these two, which are null before.
  std::atomic<bool> attached_ = false;
  std::unique_ptr<CanaryPrograms> programs_;
  std::unique_ptr<CanaryRuns> canary_;
  /// Of a handler that has been checked.
  std::atomic<uint32_t> wanted_templates_ = 0;
  /// Made by `Attach`, before there is a sandbox. Last: its thread uses all else.
  std::atomic<std::shared_ptr<ReadyPool>> ready_;
};

/// The descriptor's factory, of plugin.cc. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json, Parts parts);

}  // namespace gantry::vmm
