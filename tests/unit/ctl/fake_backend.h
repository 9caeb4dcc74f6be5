// SPDX-License-Identifier: Apache-2.0
//
// A backend that is only asked about itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>

namespace gantry::ctl {

class FakeBackend : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {"fake", "1", false, needs}; }

  Status CheckOptions(const std::string& options_json) override {
    if (options_json == refused) {
      return Fail(Code::kInvalidArgument, "check option 'Speed': no such key");
    }
    return {};
  }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest&, SandboxContext&) override {
    return Fail(Code::kUnimplemented, "only asked about itself");
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest&, SandboxContext&,
                                                  const std::string&) override {
    return Fail(Code::kUnimplemented, "only asked about itself");
  }

  std::vector<NodeNeed> needs;
  /// These options are refused.
  std::string refused = "none";
};

}  // namespace gantry::ctl
