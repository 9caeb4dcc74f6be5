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
#include "plugins/vmm/machine/means.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

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
  /// Null: `ChooseAccelerator`.
  std::function<Acceleration(const KvmQuestion& question)> choose_accelerator;
};

/// Thread: workers, any number of calls at a time.
class VmmBackend final : public SandboxBackend {
 public:
  VmmBackend(VmmOptions options, Parts parts);

  /// Blocks: up to 3 s, where it is not known yet whether KVM works, and 2 s for each program.
  BackendInfo Describe() override;
  Status CheckOptions(const std::string& options_json) override;
  Result<std::string> Features(const FeaturesRequest& request) override;
  /// Begins to find out whether KVM works, on a thread of its own.
  void Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

 private:
  Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request, SandboxContext& context,
                                        const std::string* blob);

  const VmmOptions options_;
  const Parts parts_;
  CanaryRuns canary_;
  MachineMeans means_;
  std::atomic<bool> attached_ = false;
};

/// The descriptor's factory, of plugin.cc. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json, Parts parts);

}  // namespace gantry::vmm
