// SPDX-License-Identifier: Apache-2.0
//
// The gvisor backend: containers in sentries, which gantry starts itself and talks to
// directly.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/launch/runsc_registry.h"
#include "plugins/gvisor/options.h"
#include "plugins/gvisor/pod/sandbox.h"
#include "plugins/gvisor/warm/warm_entry.h"

namespace gantry::gvisor {

inline constexpr const char* kBackendName = "gvisor";
inline constexpr const char* kBackendVersion = "0.1.0";

/// Thread: workers, any number of calls at a time.
class GvisorBackend : public SandboxBackend {
 public:
  explicit GvisorBackend(Options options)
      : options_(std::move(options)), runscs_(std::make_shared<RunscRegistry>()) {}

  /// Of the options of handlers that have been checked, else of the backend's own.
  BackendInfo Describe() override;
  /// Of a handler until it is attached, which has no key that is unknown; of a request from
  /// then on, which may be from a containerd that knows more of them.
  Status CheckOptions(const std::string& options_json) override;
  Result<std::string> Features(const FeaturesRequest& request) override;
  void Attach(SandboxContext& context, const std::vector<BackendHandler>& handlers) override;
  void Leave() override;
  std::vector<BackendCount> Counts() override;
  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest& request,
                                                 SandboxContext& context) override;
  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest& request,
                                                  SandboxContext& context,
                                                  const std::string& blob) override;

 private:
  static constexpr size_t kMaxHandlers = 64;

  void Remember(const Options& options);
  std::vector<Options> Handlers() const;
  GvisorShared Shared() const;

  const Options options_;
  const std::shared_ptr<RunscRegistry> runscs_;
  std::atomic<bool> attached_ = false;
  mutable Mutex mutex_;
  std::vector<Options> handlers_ GANTRY_GUARDED_BY(mutex_);
  std::shared_ptr<ProcessPool> warm_ GANTRY_GUARDED_BY(mutex_);
};

/// The descriptor's factory. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json);

}  // namespace gantry::gvisor
