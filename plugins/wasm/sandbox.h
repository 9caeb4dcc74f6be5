// SPDX-License-Identifier: Apache-2.0
//
// What groups containers for this backend: their options and, in a pod without a pause container,
// what holds its namespaces. A pause container is one like others, and never WebAssembly.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/sandbox.h>
#include <gantry/toolkit/pod/pauseless_pod.h>

#include "plugins/wasm/container.h"
#include "plugins/wasm/launch.h"
#include "plugins/wasm/options.h"

namespace gantry::wasm {

/// Thread: workers, as `Sandbox`.
class WasmSandbox final : public Sandbox {
 public:
  /// `base`: the backend's options, overridden by the request's.
  static Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request,
                                               SandboxContext& context, const Options& base,
                                               const Means& means);
  /// After a restart of the engine. `blob`: what was saved, or empty.
  static Result<std::unique_ptr<Sandbox>> Recover(const SandboxRequest& request,
                                                  SandboxContext& context, const Options& base,
                                                  const Means& means, const std::string& blob);

  Status Start() override;
  Status Stop(std::chrono::milliseconds limit) override;
  Status Shutdown() override;
  Result<SandboxInfo> Info() override;
  SandboxPlatform Platform() override;
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;

 private:
  WasmSandbox(Namespace ns, SandboxContext& context, Options options, Means means)
      : ns_(std::move(ns)),
        context_(context),
        options_(std::move(options)),
        means_(std::move(means)) {}

  static Result<std::unique_ptr<WasmSandbox>> Build(const SandboxRequest& request,
                                                    SandboxContext& context, const Options& base,
                                                    const Means& means);
  Result<std::unique_ptr<WasmContainer>> MakeContainer(const ContainerRequest& request,
                                                       ContainerContext& context);

  const Namespace ns_;
  SandboxContext& context_;
  const Options options_;
  const Means means_;
  std::unique_ptr<PauselessPod> pod_;
};

}  // namespace gantry::wasm
