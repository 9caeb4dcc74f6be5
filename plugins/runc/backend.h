// SPDX-License-Identifier: Apache-2.0
//
// The runc backend: containers as processes of the host, made by an OCI
// runtime.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "plugins/runc/options.h"

namespace gantry::runc {

inline constexpr const char* kBackendName = "runc";
inline constexpr const char* kBackendVersion = "0.1.0";

/// Thread: workers, any number of calls at a time.
class RuncBackend : public SandboxBackend {
 public:
  explicit RuncBackend(Options options) : options_(std::move(options)) {}

  /// Runs the OCI runtime's and criu's `--version`. Blocks: up to 2 s for each.
  BackendInfo Describe() override;
  /// Of a handler until it is attached, which has no key that is unknown; of a request from
  /// then on, which may be from a containerd that knows more of them.
  Status CheckOptions(const std::string& options_json) override;

  void Attach(SandboxContext&, const std::vector<BackendHandler>&) override { attached_ = true; }

  /// What the handler's OCI runtime says of itself. Blocks: up to 2 s.
  Result<std::string> Features(const FeaturesRequest& request) override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

 private:
  Options options_;
  std::atomic<bool> attached_ = false;
};

/// The descriptor's factory. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json);

}  // namespace gantry::runc
