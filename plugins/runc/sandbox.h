// SPDX-License-Identifier: Apache-2.0
//
// What groups containers for this backend: nothing but their options. The
// containers of a pod share namespaces by the paths in their specs, which CRI
// fills in with those of the pause container.
#pragma once

#include <memory>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/sandbox.h>

#include "plugins/runc/container.h"
#include "plugins/runc/options.h"

namespace gantry::runc {

/// Thread: workers, as `Sandbox`.
class RuncSandbox : public Sandbox {
 public:
  /// `base`: the backend's options, overridden by the request's.
  static Result<std::unique_ptr<Sandbox>> Make(const SandboxRequest& request,
                                               SandboxContext& context, const Options& base);

  Result<std::unique_ptr<Container>> CreateContainer(const ContainerRequest& request,
                                                     ContainerContext& context) override;
  Result<std::unique_ptr<Container>> RecoverContainer(const ContainerRequest& request,
                                                      ContainerContext& context,
                                                      const std::string& blob) override;
  SandboxPlatform Platform() override;

 private:
  RuncSandbox(Namespace ns, SandboxContext& context, Options options)
      : ns_(std::move(ns)), context_(&context), options_(std::move(options)) {}

  Result<std::unique_ptr<RuncContainer>> MakeContainer(const ContainerRequest& request,
                                                       ContainerContext& context);

  Namespace ns_;
  SandboxContext* context_;
  Options options_;
};

}  // namespace gantry::runc
