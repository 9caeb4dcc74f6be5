// SPDX-License-Identifier: Apache-2.0
//
// What groups containers for this backend: their options and, in a pod without a
// pause container, the process that holds its namespaces and the files that its
// containers share. The containers join the namespaces by the paths in their
// specs, which CRI fills in: those of the pause container, or of that process.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/sandbox.h>
#include <gantry/toolkit/pod/pauseless_pod.h>

#include "plugins/runc/container.h"
#include "plugins/runc/options.h"

namespace gantry::runc {

/// Thread: workers, as `Sandbox`.
class RuncSandbox : public Sandbox {
 public:
  /// `base`: the backend's options, overridden by the request's.
  static Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request,
                                               SandboxContext& context, const Options& base);
  /// After a restart of the engine. `blob`: what was saved, or empty.
  static Result<std::unique_ptr<Sandbox>> Recover(const SandboxRequest& request,
                                                  SandboxContext& context, const Options& base,
                                                  const std::string& blob);

  Status Start() override;
  Status Stop(std::chrono::milliseconds limit) override;
  Status Shutdown() override;
  Result<SandboxInfo> Info() override;
  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;
  SandboxPlatform Platform() override;

 private:
  RuncSandbox(Namespace ns, SandboxContext& context, Options options)
      : ns_(std::move(ns)), context_(&context), options_(std::move(options)) {}

  static Result<std::unique_ptr<RuncSandbox>> Build(const SandboxRequest& request,
                                                    SandboxContext& context, const Options& base);
  Result<std::unique_ptr<RuncContainer>> MakeContainer(const ContainerRequest& request,
                                                       ContainerContext& context);

  Namespace ns_;
  SandboxContext* context_;
  Options options_;
  /// Of a pod without a pause container.
  std::unique_ptr<PauselessPod> pod_;
};

}  // namespace gantry::runc
