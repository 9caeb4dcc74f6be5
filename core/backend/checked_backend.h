// SPDX-License-Identifier: Apache-2.0
//
// A backend whose sandboxes have options that it has checked: what its `CheckOptions` refuses
// never reaches its `CreateSandbox`.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::backend {

/// Passes every call on. Thread: any.
class CheckedBackend final : public SandboxBackend {
 public:
  /// Owner: `backend` is the caller's and outlives this.
  CheckedBackend(std::string name, SandboxBackend& backend)
      : name_(std::move(name)), backend_(backend) {}

  /// The options of a handler of the configuration, as it has just checked them: containers with
  /// these are served without asking again, or refused with the error. One of a kind that may
  /// pass, kFailedPrecondition of the node, is asked for again with the next sandbox.
  void AddHandler(const std::string& options_json, const Status& checked);

  BackendInfo Describe() override { return backend_.Describe(); }

  Status CheckOptions(const std::string& options_json) override {
    return backend_.CheckOptions(options_json);
  }

  Result<std::string> Features(const FeaturesRequest& request) override {
    return backend_.Features(request);
  }

  void Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) override {
    backend_.Attach(context, handlers);
  }

  void Leave() override { backend_.Leave(); }

  std::vector<BackendCount> Counts() override { return backend_.Counts(); }

  /// Errors: as its `CheckOptions`, before the backend knows of the sandbox.
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;

  /// Not checked: it runs.
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override {
    return backend_.RecoverSandbox(request, context, blob);
  }

 private:
  /// So many different options that came with requests are known to be good.
  static constexpr size_t kMostKnown = 64;

  Status Check(const std::string& options_json);

  const std::string name_;
  SandboxBackend& backend_;
  Mutex mutex_;
  std::set<std::string, std::less<>> good_ GANTRY_GUARDED_BY(mutex_);
  std::map<std::string, Error, std::less<>> refused_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::backend
