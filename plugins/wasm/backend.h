// SPDX-License-Identifier: Apache-2.0
//
// The wasm backend: WebAssembly modules and components as containers, and native ones beside them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/backend.h>
#include <gantry/error.h>

#include "plugins/wasm/launch.h"
#include "plugins/wasm/options.h"

namespace gantry::wasm {

inline constexpr const char* kBackendName = "wasm";
inline constexpr const char* kBackendVersion = "0.1.0";

/// What a test has others of.
struct Parts {
  std::function<Result<UniqueFd>(std::string_view name)> open_program;
  std::function<std::unique_ptr<ArtifactSource>(SandboxContext&, const Options&)> make_artifacts;
  FindInImage find_in_image;
};

/// Thread: workers, any number of calls at a time.
class WasmBackend final : public SandboxBackend {
 public:
  WasmBackend(Options options, Parts parts)
      : options_(std::move(options)), parts_(std::move(parts)) {}

  /// Asks the engines what they are. Blocks: up to 2 s for each.
  BackendInfo Describe() override;
  /// Of a handler until it is attached, which has no key that is unknown; of a request from then
  /// on, which may be from a containerd that knows more of them. Blocks: up to 2 s, where WasmEdge
  /// is named and has not been found yet.
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
  Means MeansNow() const;

  const Options options_;
  const Parts parts_;
  /// Made by `Attach`, before any sandbox.
  std::shared_ptr<ArtifactSource> artifacts_;
  std::atomic<bool> attached_ = false;
  /// It has answered once, and is not asked for each container.
  std::atomic<bool> has_wasmedge_ = false;
};

/// The descriptor's factory, of plugin.cc. Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<SandboxBackend>> MakeBackend(const std::string& options_json, Parts parts);

}  // namespace gantry::wasm
