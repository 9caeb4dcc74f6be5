// SPDX-License-Identifier: Apache-2.0
//
// The runc backend: containers as processes of the host, made by an OCI
// runtime.
#pragma once

#include <memory>
#include <string>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "plugins/runc/options.h"

namespace gantry::runc {

inline constexpr const char* kBackendName = "runc";
inline constexpr const char* kBackendVersion = "0.1.0";

/// Thread: workers, any number of calls at a time; has no state that changes.
class RuncBackend : public SandboxBackend {
 public:
  explicit RuncBackend(Options options) : options_(std::move(options)) {}

  /// Runs the OCI runtime's and criu's `--version`. Blocks: up to 2 s for each.
  BackendInfo Describe() override;
  Status CheckOptions(const std::string& options_json) override;
  /// What the handler's OCI runtime says of itself. Blocks: up to 2 s.
  Result<std::string> Features(const FeaturesRequest& request) override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

 private:
  Options options_;
};

/// The descriptor's factory. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json);

}  // namespace gantry::runc
